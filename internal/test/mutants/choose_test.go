package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
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
		kit.Need(t, err == nil, "git %q: %v\n%s", words, err, stderr.String())
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
		kit.Need(t, err == nil || errors.Is(err, fs.ErrNotExist), "error: %v", err)
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

// goPackage holds the fields of "go list -json" that are used here.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// TestMutants_EachCompiles keeps a rename from turning a mutant into text that
// does not compile: such a mutant shows nothing about the tests.
func TestMutants_EachCompiles(t *testing.T) {
	c := newCompiler(t)
	ofPackage := map[string][]mutant{}
	for _, m := range readMutants(t) {
		if dir := filepath.Join(c.root, filepath.Dir(m.file)); filepath.Ext(m.file) != ".go" {
			checkTemplate(t, m)
		} else if _, isKnown := c.inDir[dir]; isKnown {
			ofPackage[dir] = append(ofPackage[dir], m)
		} else {
			t.Errorf("%s: %s is in no package of the module", m.name, m.file)
		}
	}
	for dir, planted := range ofPackage {
		apart, together := c.split(planted)
		c.checkAll(c.inDir[dir], together)
		for _, m := range apart {
			c.checkAll(c.inDir[dir], []mutant{m})
		}
	}
}

// compiler type-checks packages of the module with mutants planted in them.
type compiler struct {
	t       *testing.T
	root    string // absolute
	inDir   map[string]goPackage
	fset    *token.FileSet
	imports types.Importer
}

func newCompiler(t *testing.T) *compiler {
	abs := kit.Value(filepath.Abs(root))(t)
	c := &compiler{t: t, root: abs, inDir: map[string]goPackage{}, fset: token.NewFileSet()}
	exports := map[string]string{}
	for _, p := range listPackages(t) {
		exports[p.ImportPath], c.inDir[p.Dir] = p.Export, p
	}
	c.imports = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// split returns the mutants whose text overlaps another's in the same file,
// and those that can be planted together.
func (c *compiler) split(planted []mutant) (apart, together []mutant) {
	begin := map[string]int{} // by name
	for _, m := range planted {
		begin[m.name] = strings.Index(c.read(m.file), m.old)
	}
	for _, m := range planted {
		overlaps := func(o mutant) bool {
			a, b := begin[m.name], begin[o.name]
			return o.name != m.name && o.file == m.file && a < b+len(o.old) && b < a+len(m.old)
		}
		if slices.ContainsFunc(planted, overlaps) {
			apart = append(apart, m)
		} else {
			together = append(together, m)
		}
	}
	return apart, together
}

// checkAll checks p with all of the mutants in it. Where that does not compile
// it checks each half: the faults of a mutant are those that it has alone.
func (c *compiler) checkAll(p goPackage, planted []mutant) {
	err := c.check(p, planted)
	switch {
	case err == nil:
	case len(planted) == 1:
		c.t.Errorf("%s does not compile:\n%v", planted[0].name, err)
	default:
		half := len(planted) / 2
		c.checkAll(p, planted[:half])
		c.checkAll(p, planted[half:])
	}
}

func (c *compiler) check(p goPackage, planted []mutant) error {
	var files []*ast.File
	var faults []error
	for _, name := range p.GoFiles {
		name = filepath.Join(p.Dir, name)
		rel, err := filepath.Rel(c.root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(c.fset, name, c.plant(rel, planted), parser.SkipObjectResolution)
		faults, files = append(faults, err), append(files, file)
	}
	if errors.Join(faults...) == nil {
		checker := types.Config{Importer: c.imports, Error: func(err error) { faults = append(faults, err) }}
		checker.Check(p.ImportPath, c.fset, files, nil) // its error is the first of those that Error was given
	}
	return errors.Join(faults...)
}

// plant returns the text of a file with its mutants planted, which do not
// overlap. One pass replaces all: the new text of one mutant may contain the
// old text of another.
func (c *compiler) plant(file string, planted []mutant) string {
	text := c.read(file)
	var edits []string // old, new, old, new …
	for _, m := range planted {
		if m.file == file {
			edits = append(edits, m.old, m.new)
		}
	}
	return strings.NewReplacer(edits...).Replace(text)
}

// read returns a file of the module.
func (c *compiler) read(file string) string {
	text := kit.Value(os.ReadFile(filepath.Join(c.root, file)))(c.t)
	return string(text)
}

// checkTemplate checks that a mutant of a template can be parsed.
func checkTemplate(t *testing.T, m mutant) {
	if filepath.Ext(m.file) != ".html" {
		return
	}
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err == nil {
		_, err = template.New(m.name).Parse(strings.Replace(string(text), m.old, m.new, 1))
	}
	kit.Want(t, m.name+" cannot be parsed", err, nil)
}

// listPackages returns the packages of the module and all that they import,
// compiled. It uses the build settings of the tests that are running: with
// others everything would be built a second time.
func listPackages(t *testing.T) []goPackage {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	kit.Need(t, err == nil, "go list: %v\n%s", err, stderr.String())
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p goPackage
		kit.Must(t, d.Decode(&p))
		all = append(all, p)
	}
	return all
}
