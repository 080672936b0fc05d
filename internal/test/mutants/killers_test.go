package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// killersFile names the test that killed each mutant the last time: mutant,
// folder of the package, test, and how long the test took alone. It makes a
// run of hours one of minutes, and decides nothing: where that test does not
// find the mutant, all its tests are run.
const killersFile = "testdata/killers"

// killer is the test that finds a mutant.
type killer struct {
	folder string
	test   string
	time   time.Duration // zero: not measured
}

// flags returns the flags that the tests of m have in the killer's package,
// with the killer in place of their choice.
func (k killer) flags(m mutant) []string {
	var path []string
	for name := range strings.SplitSeq(k.test, "/") {
		path = append(path, "^"+regexp.QuoteMeta(name)+"$")
	}
	alone := []string{"-run", strings.Join(path, "/")}
	for _, test := range m.tests {
		folder, flags := splitTest(test)
		if folder != k.folder {
			continue
		}
		if at := slices.Index(flags, "-run"); at >= 0 {
			flags = slices.Delete(flags, at, at+2)
		}
		return append(alone, flags...)
	}
	return alone
}

// limit is how long the killer may take before it counts as one that hangs.
func (k killer) limit() time.Duration {
	if k.time == 0 {
		return wholeLimit
	}
	return max(10*time.Second, 10*k.time)
}

// splitTest returns the folder of the package and the flags of a test in the
// table.
func splitTest(test string) (folder string, flags []string) {
	words := strings.Fields(test)
	return words[0], words[1:]
}

// killers knows which test killed which mutant.
type killers struct {
	list []mutant
	mu   sync.Mutex
	by   map[string]killer // guarded by mu
}

func readKillers(t *testing.T, list []mutant) *killers {
	ks := &killers{list: list, by: map[string]killer{}}
	text, err := os.ReadFile(killersFile)
	kit.Need(t, err == nil || errors.Is(err, fs.ErrNotExist), "error: %v", err)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		kit.Need(t, len(words) == 4, "%s: %q has %d words, want 4", killersFile, line, len(words))
		took, err := time.ParseDuration(words[3])
		kit.Need(t, err == nil, "%s: %v", killersFile, err)
		ks.by[words[0]] = killer{words[1], words[2], took}
	}
	return ks
}

func (ks *killers) of(name string) (killer, bool) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	k, isKnown := ks.by[name]
	return k, isKnown
}

// note writes a new killer to the file at once, so that a run that is ended
// early keeps its findings. The time of a killer that is known stays: it
// differs with each run.
func (ks *killers) note(t *testing.T, name string, k killer) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if was := ks.by[name]; was.folder == k.folder && was.test == k.test && was.time > 0 {
		return
	}
	k.time = max(k.time, 100*time.Millisecond)
	ks.by[name] = k
	maps.DeleteFunc(ks.by, func(name string, _ killer) bool {
		return !slices.ContainsFunc(ks.list, func(m mutant) bool { return m.name == name })
	})
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(ks.by)) {
		k := ks.by[name]
		fmt.Fprintf(&text, "%s %s %s %.1fs\n", name, k.folder, k.test, k.time.Seconds())
	}
	kit.Want(t, "the error of WriteFile", os.WriteFile(killersFile, []byte(text.String()), 0o644), nil)
}

// mutant is one mistake, and the tests that must find it.
type mutant struct {
	name    string
	promise string
	file    string // from the root of the module
	old     string // is in the file exactly once
	new     string
	tests   []string // each a package's folder and flags of its test binary, the quickest first
}

const root = "../../.."

// readMutants reads testdata/mutants:
//
//	# a remark
//	Name I28 path/of/the/file.go
//	? -run One|Two
//	? internal/test/simulation -sample
//	  a line of both texts
//	- a line of the old text
//	+ a line of the new text
//
// The lines of a text are joined by newlines. A text ends with a newline only
// if its last line is empty; lines are exact, with their tabs. Tests without a
// folder are in the folder of the file; without any "?" they are all tests of
// that folder.
func readMutants(t *testing.T) []mutant {
	t.Helper()
	text := kit.Value(os.ReadFile("testdata/mutants"))(t)
	list, err := parseMutants(string(text))
	kit.Need(t, err == nil, "testdata/mutants:%v", err)
	return list
}

var header = regexp.MustCompile(`^([A-Z]\w+) (I\d+) (\S+)$`)

func parseMutants(text string) (list []mutant, err error) {
	var was, is []string // the lines of the last mutant
	taken, number := map[string]bool{}, 0
	for line := range strings.Lines(text + "End I0 -\n") {
		number++
		line = strings.TrimSuffix(line, "\n")
		mark, rest := line[:min(2, len(line))], line[min(2, len(line)):]
		h := header.FindStringSubmatch(line)
		switch {
		case strings.TrimRight(line, " \t\r") != line:
			err = errors.New("the line ends with a blank, which editors remove: extend both texts")
		case mark == "" || mark[0] == '#':
		case h != nil && taken[h[1]]:
			err = fmt.Errorf("the name %s appears twice", h[1])
		case h != nil:
			if len(list) > 0 {
				err = list[len(list)-1].finish(was, is)
			}
			was, is, taken[h[1]] = nil, nil, true
			list = append(list, mutant{name: h[1], promise: h[2], file: h[3]})
		case len(list) == 0:
			err = fmt.Errorf("%q comes before the first mutant", line)
		case mark == "? ":
			list[len(list)-1].tests = append(list[len(list)-1].tests, rest)
		case mark == "  ":
			was, is = append(was, rest), append(is, rest)
		case mark == "- " || mark == "-":
			was = append(was, rest)
		case mark == "+ " || mark == "+":
			is = append(is, rest)
		default:
			err = fmt.Errorf("%q is no line of a mutant: want \"? \", \"- \", \"+ \" or two spaces at its start", line)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", number, err)
		}
	}
	return list[:len(list)-1], nil
}

// finish gives m its texts, and its tests the folder that they leave out.
func (m *mutant) finish(was, is []string) error {
	folder := filepath.Dir(m.file)
	for i, test := range m.tests {
		if strings.HasPrefix(test, "-") {
			m.tests[i] = folder + " " + test
		}
	}
	if m.tests == nil {
		m.tests = []string{folder}
	}
	m.old, m.new = strings.Join(was, "\n"), strings.Join(is, "\n")
	if m.old == "" || m.old == m.new {
		return fmt.Errorf("%s changes nothing", m.name)
	}
	return nil
}

// TestTable_Parsed shows each kind of line, and what the parser refuses.
func TestTable_Parsed(t *testing.T) {
	const first = "First I2 a/b.go\n"
	for _, c := range []struct{ what, text, want string }{
		{"the least", first + "- x\n", `[{"First" "I2" "a/b.go" "x" "" ["a"]}]`},
		{
			"all kinds of lines", "# remark\n\n" + first + "? -run X|Y\n? cmd/c -short\n  \tboth\n- - x\n-\n+ \t y\n+ z\n\nSecond I30 c.js\n- x\n+ y\n",
			`[{"First" "I2" "a/b.go" "\tboth\n- x\n" "\tboth\n\t y\nz" ["a -run X|Y" "cmd/c -short"]} {"Second" "I30" "c.js" "x" "y" ["."]}]`,
		},
		{"no promise", "First a/b.go\n", `1: "First a/b.go" comes before the first mutant`},
		{"a line too early", "- x\n" + first, `1: "- x" comes before the first mutant`},
		{"a second name", first + "- x\n" + first, "3: the name First appears twice"},
		{"a mutant without text", first + "Second I30 c.js\n- x\n", "2: First changes nothing"},
		{"the last without text", first + "+ x\n", "3: First changes nothing"},
		{"equal texts", first + "  x\n", "3: First changes nothing"},
		{"a blank at the end", first + "- x \n", "2: the line ends with a blank, which editors remove: extend both texts"},
		{"a line of the file itself", first + "-x\n", `2: "-x" is no line of a mutant: want "? ", "- ", "+ " or two spaces at its start`},
	} {
		list, err := parseMutants(c.text)
		got := fmt.Sprintf("%q", list)
		if err != nil {
			got = err.Error()
		}
		kit.Want(t, c.what, got, c.want)
	}
}
