package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// missing checks that all ranks have reported.
func missing(reports []*Report, world int) []Check {
	there := map[int]bool{}
	for _, r := range reports {
		there[r.Rank] = true
	}
	var absent []int
	for rank := range world {
		if !there[rank] {
			absent = append(absent, rank)
		}
	}
	if absent == nil {
		return []Check{{Cluster, "ranks", OK, fmt.Sprintf("all %d reported", world), ""}}
	}
	return []Check{{Cluster, "ranks", Fail, fmt.Sprintf("%d of %d reported; missing: %s", len(reports), world, ranges(absent)), "start primus preflight on all of them, and look for hosts that hang"}}
}

// ranges writes sorted numbers as 0-2,5.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		text := strconv.Itoa(numbers[i])
		if j > i {
			text += "-" + strconv.Itoa(numbers[j])
		}
		parts = append(parts, text)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// reachChecks checks that every host reached every other one.
func reachChecks(all []reach, hosts int) []Check {
	if hosts < 2 {
		return nil
	}
	slices.SortFunc(all, func(a, b reach) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	var checks []Check
	var slowest time.Duration
	for _, x := range all {
		if x.Error != "" {
			checks = append(checks, Check{Cluster, fmt.Sprintf("rank %d reaches rank %d", x.From, x.To), Fail, fmt.Sprintf("%s at %s: %s", x.Host, x.Address, x.Error), "check routes and firewalls between the two hosts"})
			continue
		}
		slowest = max(slowest, x.Took)
	}
	if want := hosts * (hosts - 1); len(all) < want {
		checks = append(checks, Check{Cluster, "reachability", Warn, fmt.Sprintf("%d of %d connections between hosts were tried", len(all), want), "a rank ended before it had tried: look at its own output"})
	} else if checks == nil {
		checks = append(checks, Check{Cluster, "reachability", OK, fmt.Sprintf("every one of %d hosts reaches every other, in at most %v", hosts, slowest.Round(10*time.Microsecond)), ""})
	}
	return checks
}

// skewChecks checks that the clocks of all ranks agree.
func skewChecks(ranks []joined, l Limits) []Check {
	var checks []Check
	for _, j := range ranks {
		if skew := j.skew.Abs(); l.ClockSkew > 0 && skew > l.ClockSkew {
			checks = append(checks, Check{Cluster, "clock", Warn, fmt.Sprintf("rank %d (%s) is %v away from rank 0", j.report.Rank, j.report.Host, skew.Round(time.Second)), "synchronise the clocks"})
		}
	}
	return checks
}

// Compare returns a check for every fact in which ranks differ, with the ranks that differ from
// most of the others, and for ranks that are slower than the others.
func Compare(reports []*Report, l Limits) []Check {
	if len(reports) < 2 {
		return nil
	}
	keys := map[string]bool{}
	rates := map[string]bool{}
	for _, r := range reports {
		for key := range r.Facts {
			keys[key] = true
		}
		for key := range r.Rates {
			rates[key] = true
		}
	}
	var checks []Check
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		checks = append(checks, compareFact(reports, key)...)
	}
	for _, key := range slices.Sorted(maps.Keys(rates)) {
		checks = append(checks, compareRate(reports, key, l.SlowRank)...)
	}
	if checks == nil {
		checks = append(checks, Check{Cluster, "differences", OK, fmt.Sprintf("none between %d ranks", len(reports)), ""})
	}
	return checks
}

func compareFact(reports []*Report, key string) []Check {
	count := map[string]int{}
	for _, r := range reports {
		count[r.Facts[key]]++
	}
	if len(count) < 2 {
		return nil
	}
	usual := reports[0].Facts[key] // the one of the lowest rank, where two are equally common
	for _, r := range reports {
		if count[r.Facts[key]] > count[usual] {
			usual = r.Facts[key]
		}
	}
	odd := map[string][]*Report{}
	for _, r := range reports {
		if value := r.Facts[key]; value != usual {
			odd[value] = append(odd[value], r)
		}
	}
	var checks []Check
	for _, value := range slices.Sorted(maps.Keys(odd)) {
		checks = append(checks, Check{
			Cluster, key, Warn, fmt.Sprintf("%s: %s; %s: %s", names(odd[value]), orNone(value), others(count[usual]), orNone(usual)),
			"make the nodes alike, or leave the odd one out",
		})
	}
	return checks
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

func others(n int) string {
	if n == 1 {
		return "the other rank"
	}
	return fmt.Sprintf("%d others", n)
}

// names lists ranks with their hosts.
func names(reports []*Report) string {
	byHost := map[string][]int{}
	var order []string
	for _, r := range reports {
		if byHost[r.Host] == nil {
			order = append(order, r.Host)
		}
		byHost[r.Host] = append(byHost[r.Host], r.Rank)
	}
	var parts []string
	for _, host := range order {
		word := "rank"
		if len(byHost[host]) > 1 {
			word = "ranks"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", word, ranges(byHost[host]), host))
	}
	return strings.Join(parts, ", ")
}

func compareRate(reports []*Report, key string, fraction float64) []Check {
	var checks []Check
	for _, r := range reports {
		var rest []float64
		for _, other := range reports {
			if rate, ok := other.Rates[key]; ok && other != r {
				rest = append(rest, rate)
			}
		}
		own, ok := r.Rates[key]
		if !ok || len(rest) == 0 {
			continue
		}
		slices.Sort(rest)
		if median := rest[len(rest)/2]; own < fraction*median {
			checks = append(checks, Check{
				Cluster, key, Warn, fmt.Sprintf("%s: %.0f %% of the median of the others", names([]*Report{r}), 100*own/median),
				"a slow node holds up all others: look for other processes, a low clock or failing memory there",
			})
		}
	}
	return checks
}
