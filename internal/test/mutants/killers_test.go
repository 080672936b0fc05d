package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
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
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
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
