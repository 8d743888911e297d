package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Job is a run with its ranks, of which each is a member of the fleet.
type Job []Member

// Jobs returns the runs, in the order of their first ranks. Ranks belong to one run if they are of
// one experiment, framework and number of ranks.
func Jobs(members []Member) []Job {
	var jobs []Job
	for _, m := range members {
		i := slices.IndexFunc(jobs, func(j Job) bool {
			first := j[0]
			return m.WorldSize > 1 && first.Experiment == m.Experiment && first.Backend == m.Backend && first.WorldSize == m.WorldSize &&
				!slices.ContainsFunc(j, func(other Member) bool { return other.Rank == m.Rank })
		})
		if i < 0 {
			jobs = append(jobs, Job{m})
			continue
		}
		jobs[i] = append(jobs[i], m)
	}
	for _, j := range jobs {
		slices.SortFunc(j, func(a, b Member) int { return a.Rank - b.Rank })
	}
	return jobs
}

// Name returns what names the run: the id of a single process, or the experiment.
func (j Job) Name() string {
	if j[0].WorldSize > 1 {
		return j[0].Experiment
	}
	return j[0].ID
}

// Ranks returns which ranks are there, such as "0-3 of 4", or "0/1" for a single process.
func (j Job) Ranks() string {
	if j[0].WorldSize == 1 {
		return j[0].RankText()
	}
	var ranges []string
	for i := 0; i < len(j); {
		last := i
		for last+1 < len(j) && j[last+1].Rank == j[last].Rank+1 {
			last++
		}
		text := strconv.Itoa(j[i].Rank)
		if last > i {
			text += "-" + strconv.Itoa(j[last].Rank)
		}
		ranges, i = append(ranges, text), last+1
	}
	return fmt.Sprintf("%s of %d", strings.Join(ranges, ","), j[0].WorldSize)
}

// Hosts returns the host, or how many there are.
func (j Job) Hosts() string {
	hosts := map[string]bool{}
	for _, m := range j {
		hosts[m.Host] = true
	}
	if len(hosts) > 1 {
		return fmt.Sprintf("%d hosts", len(hosts))
	}
	return j[0].Host
}

// Common returns a text about each rank if all have the same, else the texts that there are, with
// commas.
func (j Job) Common(text func(Member) string) string {
	var all []string
	for _, m := range j {
		if one := text(m); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, ",")
}
