package preflight

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/sysmem"
)

// Device is an accelerator as the tool of its vendor describes it. A number that the tool does not
// give is negative.
type Device struct {
	Index         int      `json:"index"`
	Name          string   `json:"name"`
	ID            string   `json:"id,omitempty"`
	Driver        string   `json:"driver,omitempty"`
	Memory        float64  `json:"memory"`
	Used          float64  `json:"memory_used"`
	Busy          float64  `json:"busy_percent"`
	Temperature   float64  `json:"temperature"`
	Uncorrectable float64  `json:"uncorrectable_errors"`
	Processes     []string `json:"processes,omitempty"`
}

// runTool returns what a tool prints and how long it took.
type runTool func(args ...string) ([]byte, time.Duration, error)

// gpuTools are run in order until one exists and answers.
var gpuTools = []struct {
	name string
	ask  func(run runTool) ([]Device, time.Duration, error)
}{{"nvidia-smi", askNVIDIA}, {"amd-smi", askAMD}, {"rocm-smi", askROCm}}

// gpus checks the accelerators.
func (r *Report) gpus(ctx context.Context, m Machine, l Limits) {
	asked := ""
	for _, tool := range gpuTools {
		if !m.has(tool.name) {
			continue
		}
		devices, took, err := tool.ask(func(args ...string) ([]byte, time.Duration, error) {
			return m.run(ctx, l.ToolTimeout, tool.name, args...)
		})
		if err != nil {
			r.add(GPU, tool.name, Fail, err.Error(), "the driver may hang or be missing: run "+tool.name+" by hand and read dmesg")
			asked = tool.name
			continue
		}
		asked, r.Devices = tool.name, devices
		r.add(GPU, tool.name, grade(took > l.SlowTool, Warn), fmt.Sprintf("answered in %v", took.Round(time.Millisecond)), "a slow answer often comes before a driver that hangs")
		break
	}
	if asked == "" {
		r.withoutTool(m, l)
		return
	}
	r.devices(l)
}

// withoutTool says what the PCI bus has where no tool of a vendor can be asked.
func (r *Report) withoutTool(m Machine, l Limits) {
	const root = "sys/bus/pci/devices"
	vendors := map[string]string{"0x10de": "NVIDIA", "0x1002": "AMD"}
	count := map[string]int{}
	for _, slot := range m.list(root) {
		class, vendor := m.read(path.Join(root, slot, "class")), vendors[m.read(path.Join(root, slot, "vendor"))]
		if vendor != "" && (strings.HasPrefix(class, "0x0302") || strings.HasPrefix(class, "0x1200")) { // a 3D controller or a processing accelerator
			count[vendor]++
		}
	}
	const missing = "none of nvidia-smi, amd-smi and rocm-smi is on PATH"
	r.Facts["devices"] = "none"
	status, value := OK, missing
	for _, vendor := range slices.Sorted(maps.Keys(count)) {
		status = Warn
		value += fmt.Sprintf("; the PCI bus has %s of %s", plaintext.Quantity(count[vendor], "accelerator", "accelerators"), vendor)
	}
	advice := "install the driver and its tools, or put them on PATH"
	if l.ExpectedGPUs > 0 {
		status, advice = Fail, fmt.Sprintf("%d devices are expected: %s", l.ExpectedGPUs, advice)
	}
	r.add(GPU, "devices", status, value, advice)
}

func (r *Report) devices(l Limits) {
	names, drivers := map[string]int{}, map[string]int{}
	for _, d := range r.Devices {
		names[fmt.Sprintf("%s, %s", d.Name, sysmem.Text(d.Memory))]++
		drivers[d.Driver]++
	}
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		kinds = append(kinds, fmt.Sprintf("%d × %s", names[name], name))
	}
	value := strings.Join(kinds, "; ")
	if value == "" {
		value = "none"
	}
	r.Facts["devices"], r.Facts["driver"] = value, strings.Join(slices.Sorted(maps.Keys(drivers)), ", ")
	switch {
	case l.ExpectedGPUs > 0 && len(r.Devices) != l.ExpectedGPUs:
		r.add(GPU, "devices", Fail, value, fmt.Sprintf("%d devices are expected: look for the missing ones with lspci and in dmesg", l.ExpectedGPUs))
	case len(names) > 1:
		r.add(GPU, "devices", Warn, value, "the devices of a node differ, so the slowest one sets the pace")
	default:
		r.ok(GPU, "devices", "%s", value)
	}
	for _, d := range r.Devices {
		r.device(d, l)
	}
}

func (r *Report) device(d Device, l Limits) {
	name := fmt.Sprintf("device %d", d.Index)
	status, advice := OK, ""
	worse := func(s Status, text string) {
		if s == Fail || status == OK {
			status = s
		}
		if advice != "" {
			advice += "; "
		}
		advice += text
	}
	var parts []string
	if d.Used >= 0 && d.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s used", sysmem.Text(d.Used), sysmem.Text(d.Memory)))
	}
	if d.Busy >= 0 {
		parts = append(parts, fmt.Sprintf("%.0f %% busy", d.Busy))
	}
	if d.Temperature >= 0 {
		parts = append(parts, fmt.Sprintf("%.0f °C", d.Temperature))
	}
	var foreign []string
	for _, p := range d.Processes {
		_, process, _ := strings.Cut(p, " ")
		if !slices.Contains(l.AllowedNames, process[strings.LastIndexByte(process, '/')+1:]) {
			foreign = append(foreign, p)
		}
	}
	if len(foreign) > 0 {
		parts = append(parts, "processes: "+strings.Join(foreign, ", "))
		worse(map[bool]Status{true: Warn, false: Fail}[l.AllowForeign], "other processes hold the device: end them")
	} else if l.BusyMemory > 0 && d.Used > l.BusyMemory {
		worse(Warn, fmt.Sprintf("more than %s are in use before the run: look for a process that was left over", sysmem.Text(l.BusyMemory)))
	}
	if l.BusyPercent > 0 && d.Busy > l.BusyPercent {
		worse(Warn, fmt.Sprintf("busier than %.0f %% before the run", l.BusyPercent))
	}
	if d.Temperature > 90 {
		worse(Warn, "hotter than 90 °C before the run: check the cooling")
	}
	if d.Uncorrectable > 0 {
		parts = append(parts, fmt.Sprintf("%.0f uncorrectable memory errors", d.Uncorrectable))
		worse(Fail, "memory errors that were not corrected: reset or replace the device")
	}
	r.add(GPU, name, status, strings.Join(parts, ", "), advice)
}

// maxNumber is larger than any number that a tool has reason to print.
const maxNumber = 1 << 62

// number returns the number at the beginning of a text, -1 without one that can be a size or a
// count.
func number(text string) float64 {
	f := strings.Fields(text)
	if len(f) == 0 {
		return -1
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(f[0], "%"), 64)
	if err != nil || !(n >= 0 && n <= maxNumber) { // NaN is neither
		return -1
	}
	return n
}

// scaled returns a number times a unit, and -1 for what is not known.
func scaled(n, unit float64) float64 {
	if n < 0 {
		return -1
	}
	return n * unit
}

func askNVIDIA(run runTool) ([]Device, time.Duration, error) {
	const fields = "index,name,uuid,driver_version,memory.total,memory.used,utilization.gpu,temperature.gpu,ecc.errors.uncorrected.volatile.total"
	text, took, err := run("--query-gpu="+fields, "--format=csv,noheader,nounits")
	if err != nil {
		return nil, took, err
	}
	rows, err := tableOf(text, strings.Count(fields, ",")+1)
	if err != nil {
		return nil, took, fmt.Errorf("nvidia-smi: %w", err)
	}
	var devices []Device
	byID := map[string]int{}
	for _, f := range rows {
		byID[f[2]] = len(devices)
		devices = append(devices, Device{
			Index: int(number(f[0])), Name: f[1], ID: f[2], Driver: f[3], Memory: scaled(number(f[4]), 1<<20), Used: scaled(number(f[5]), 1<<20),
			Busy: number(f[6]), Temperature: number(f[7]), Uncorrectable: number(f[8]),
		})
	}
	text, _, err = run("--query-compute-apps=gpu_uuid,pid,process_name", "--format=csv,noheader,nounits")
	if err != nil {
		return devices, took, nil // older drivers and some modes list no processes
	}
	if rows, err = tableOf(text, 3); err == nil {
		for _, f := range rows {
			if i, ok := byID[f[0]]; ok {
				devices[i].Processes = append(devices[i].Processes, f[1]+" "+f[2])
			}
		}
	}
	return devices, took, nil
}

// tableOf reads lines of fields with commas.
func tableOf(text []byte, fields int) ([][]string, error) {
	reader := csv.NewReader(strings.NewReader(string(text)))
	reader.FieldsPerRecord, reader.TrimLeadingSpace, reader.LazyQuotes = fields, true, true
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("unexpected output: %w", err)
	}
	return rows, nil
}

// node is a JSON value of a tool whose layout changes between versions.
type node struct{ value any }

func parseNode(text []byte) (node, error) {
	start := strings.IndexAny(string(text), "[{") // warnings may come first
	if start < 0 {
		return node{}, fmt.Errorf("unexpected output: no JSON")
	}
	var v any
	if err := json.NewDecoder(strings.NewReader(string(text[start:]))).Decode(&v); err != nil {
		return node{}, fmt.Errorf("unexpected output: %w", err)
	}
	return node{v}, nil
}

// at returns the value at the first of several paths that is there.
func (n node) at(paths ...string) node {
	for _, path := range paths {
		v := n.value
		for key := range strings.SplitSeq(path, ".") {
			object, ok := v.(map[string]any)
			if !ok {
				v = nil
				break
			}
			v = object[key]
		}
		if v != nil {
			return node{v}
		}
	}
	return node{}
}

func (n node) list() []node {
	items, _ := n.value.([]any)
	list := make([]node, len(items))
	for i, item := range items {
		list[i] = node{item}
	}
	return list
}

func (n node) text() string {
	switch v := n.value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// number returns a number, or one with its unit as {"value": 1, "unit": "MB"}.
func (n node) number() float64 {
	if inner := n.at("value"); inner.value != nil {
		units := map[string]float64{"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
		v := inner.number()
		if unit, ok := units[strings.ToUpper(n.at("unit").text())]; ok {
			return scaled(v, unit)
		}
		return v
	}
	return number(n.text())
}

func askAMD(run runTool) ([]Device, time.Duration, error) {
	text, took, err := run("static", "--json")
	if err != nil {
		return nil, took, err
	}
	static, err := parseNode(text)
	if err != nil {
		return nil, took, fmt.Errorf("amd-smi static --json: %w", err)
	}
	items := static.list()
	if len(items) == 0 {
		items = static.at("gpu_data").list()
	}
	var devices []Device
	byIndex := map[float64]int{}
	for _, item := range items {
		index := item.at("gpu").number()
		byIndex[index] = len(devices)
		devices = append(devices, Device{
			Index: int(index), Name: item.at("asic.market_name", "board.product_name").text(), ID: item.at("asic.asic_serial", "bus.bdf").text(),
			Driver: item.at("driver.version", "driver.driver_version").text(), Memory: item.at("vram.size").number(), Used: -1, Busy: -1, Temperature: -1, Uncorrectable: -1,
		})
	}
	each := func(subcommand string, use func(d *Device, item node)) {
		text, _, err := run(subcommand, "--json")
		if err != nil {
			return
		}
		doc, err := parseNode(text)
		if err != nil {
			return
		}
		items := doc.list()
		if len(items) == 0 {
			items = doc.at("gpu_data").list()
		}
		for _, item := range items {
			if i, ok := byIndex[item.at("gpu").number()]; ok {
				use(&devices[i], item)
			}
		}
	}
	each("metric", func(d *Device, item node) {
		d.Used, d.Busy = item.at("mem_usage.used_vram").number(), item.at("usage.gfx_activity").number()
		d.Temperature, d.Uncorrectable = item.at("temperature.hotspot", "temperature.edge").number(), item.at("ecc.total_uncorrectable_count").number()
	})
	each("process", func(d *Device, item node) {
		for _, p := range item.at("process_list").list() {
			info := p.at("process_info")
			if pid := info.at("pid").text(); pid != "" {
				d.Processes = append(d.Processes, pid+" "+info.at("name").text())
			}
		}
	})
	return devices, took, nil
}

func askROCm(run runTool) ([]Device, time.Duration, error) {
	text, took, err := run("--showproductname", "--showmeminfo", "vram", "--showuse", "--showtemp", "--showuniqueid", "--showdriverversion", "--json")
	if err != nil {
		return nil, took, err
	}
	doc, err := parseNode(text)
	if err != nil {
		return nil, took, fmt.Errorf("rocm-smi --json: %w", err)
	}
	cards, _ := doc.value.(map[string]any)
	driver := ""
	if system, ok := cards["system"].(map[string]any); ok {
		driver, _ = system["Driver version"].(string)
	}
	var devices []Device
	for key, value := range cards {
		index, err := strconv.Atoi(strings.TrimPrefix(key, "card"))
		fields, ok := value.(map[string]any)
		if err != nil || !ok {
			continue
		}
		get := func(names ...string) string {
			for _, name := range names {
				if text, ok := fields[name].(string); ok && text != "N/A" {
					return text
				}
			}
			return ""
		}
		devices = append(devices, Device{
			Index: index, Name: get("Card Series", "Card series", "Device Name", "Card model"), ID: get("Unique ID"), Driver: driver,
			Memory: number(get("VRAM Total Memory (B)")), Used: number(get("VRAM Total Used Memory (B)")), Busy: number(get("GPU use (%)")),
			Temperature: number(get("Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)")), Uncorrectable: -1,
		})
	}
	slices.SortFunc(devices, func(a, b Device) int { return a.Index - b.Index })
	return devices, took, nil
}
