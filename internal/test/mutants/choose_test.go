package mutants

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// choose returns the mutants that which names: "all", "rotation", or a regular
// expression on their names. A rotation is at most ten mutants that a change
// may concern and ten of the day; MUTANTS_BASE is the revision that the change
// is based on, none: there is no change.
func choose(t *testing.T, which string, list []mutant, known *killers) []mutant {
	if which == "all" {
		return list
	}
	if which != "rotation" {
		wanted := kit.Value(regexp.Compile(which))(t)
		return filter(list, func(m mutant) bool { return wanted.MatchString(m.name) })
	}
	day := int(time.Now().Unix() / (24 * 60 * 60))
	chosen := ofDay(list, day)
	if base := os.Getenv("MUTANTS_BASE"); base != "" {
		isConcerned := concerns(t, changedSince(t, base), known)
		for _, m := range ofDay(filter(list, isConcerned), day) {
			if !slices.ContainsFunc(chosen, func(o mutant) bool { return o.name == m.name }) {
				chosen = append(chosen, m)
			}
		}
	}
	return chosen
}

func filter(list []mutant, isWanted func(mutant) bool) (wanted []mutant) {
	for _, m := range list {
		if isWanted(m) {
			wanted = append(wanted, m)
		}
	}
	return wanted
}

// ofDay returns at most ten mutants, spread over the list. Each has its turn
// within one mutant in ten days.
func ofDay(list []mutant, day int) (chosen []mutant) {
	turns := (len(list) + 9) / 10
	for i, m := range list {
		if i%turns == day%turns {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// changedSince returns the files, from the root of the module, that differ
// from the revision where the branch left base.
func changedSince(t *testing.T, base string) []string {
	git := func(words ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", words...)
		cmd.Dir = root
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", words, err, stderr.String())
		}
		return strings.TrimSpace(string(out))
	}
	return strings.Split(git("diff", "--name-only", "--relative", git("merge-base", base, "HEAD")), "\n")
}

// concerns returns a function that reports whether the file of a mutant or of
// its killer is among those that changed, or no killer is known.
func concerns(t *testing.T, changed []string, known *killers) func(mutant) bool {
	tests := map[string]bool{} // folder and name of the tests in changed files
	for _, file := range changed {
		if strings.HasSuffix(file, "_test.go") {
			for _, name := range functionsIn(t, file) {
				tests[filepath.Dir(file)+" "+name] = true
			}
		}
	}
	return func(m mutant) bool {
		k, isKnown := known.of(m.name)
		function, _, _ := strings.Cut(k.test, "/")
		return !isKnown || slices.Contains(changed, m.file) || tests[k.folder+" "+function]
	}
}

var declared = regexp.MustCompile(`(?m)^func (\w+)\(`)

// functionsIn returns the names of the functions in a test file, or in all
// those of a folder. A file that was removed has none.
func functionsIn(t *testing.T, path string) (names []string) {
	files := []string{filepath.Join(root, path)}
	if !strings.HasSuffix(path, ".go") {
		var err error
		if files, err = filepath.Glob(filepath.Join(root, path, "*_test.go")); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// TestMutants_EachHasItsDay sees to it that the days of a rotation plant each
// mutant of the table once before any comes again, ten a day at most.
func TestMutants_EachHasItsDay(t *testing.T) {
	list := readMutants(t)
	days := (len(list) + 9) / 10
	planted := map[string]int{}
	for day := 20000; day < 20000+days; day++ {
		chosen := ofDay(list, day)
		kit.Check(t, len(chosen) != 0 && len(chosen) <= 10, "day %d plants %d mutants, want 1 to 10", day, len(chosen))
		for _, m := range chosen {
			planted[m.name]++
		}
	}
	for _, m := range list {
		kit.Want(t, "times that "+m.name+" is planted", planted[m.name], 1)
	}
}
