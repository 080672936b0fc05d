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
)

// killersFile names the test that killed each mutant last, one mutant on a line. It makes a run of hours one of minutes, and decides nothing: where
// that test does not find the mutant, all its tests are run.
const killersFile = "testdata/killers"

// killers knows which test killed which mutant.
type killers struct {
	list []mutant
	mu   sync.Mutex
	by   map[string]string // guarded by mu
}

func readKillers(t *testing.T, list []mutant) *killers {
	k := &killers{list: list, by: map[string]string{}}
	text, err := os.ReadFile(killersFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, test, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(test, "Test") {
			k.by[name] = test
		}
	}
	return k
}

// narrow returns the tests of a mutant with nothing but its killer in them; none: it is not known.
func (k *killers) narrow(m mutant) (narrowed []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	test, ok := k.by[m.name]
	if !ok {
		return nil
	}
	var path []string
	for name := range strings.SplitSeq(test, "/") {
		path = append(path, "^"+regexp.QuoteMeta(name)+"$")
	}
	for _, args := range m.tests {
		words := strings.Fields(args)
		if at := slices.Index(words, "-run"); at >= 0 {
			words = slices.Delete(words, at, at+2)
		}
		narrowed = append(narrowed, strings.Join(append(words, "-run", strings.Join(path, "/")), " "))
	}
	return narrowed
}

// note writes down at once what killed a mutant, so that a run that is ended early was not for nothing.
func (k *killers) note(t *testing.T, mutant, test string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !strings.HasPrefix(test, "Test") || k.by[mutant] == test {
		return
	}
	k.by[mutant] = test
	k.write(t)
}

// write writes down what is known, of the mutants that there still are. The caller holds k.mu.
func (k *killers) write(t *testing.T) {
	maps.DeleteFunc(k.by, func(name, _ string) bool {
		return !slices.ContainsFunc(k.list, func(m mutant) bool { return m.name == name })
	})
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(k.by)) {
		fmt.Fprintf(&text, "%s %s\n", name, k.by[name])
	}
	if err := os.WriteFile(killersFile, []byte(text.String()), 0o644); err != nil {
		t.Error(err)
	}
}
