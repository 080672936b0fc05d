package main_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/report"
	"vaultd/internal/test/kit"
)

// What scripts rely on is documented, field for field, and nothing is promised that is not there.
func TestDocsReference_FieldsAreThePrograms(t *testing.T) {
	doctor, _ := newSite(t, "http://127.0.0.1:1", fast).vaultd("doctor", "--json")
	audit := jsonFields("", reflect.TypeFor[report.Summary]())
	audit = append(audit, "table", "documents")
	audit = append(audit, jsonFields("table.", reflect.TypeFor[report.Closing]())...)
	audit = append(audit, auditedDocument(t)...)
	for name, want := range map[string][]string{
		"list --json":   jsonFields("", reflect.TypeFor[present.ListRow]()),
		"show --json":   jsonFields("", reflect.TypeFor[present.ShowJSON]()),
		"status --json": jsonFields("", reflect.TypeFor[present.StatusSummary]()),
		"audit --json":  audit,
		"doctor --json": jsonNames(t, "", doctor),
	} {
		have := documentedFields(t, name)
		if name == "show --json" { // the page says so, and does not repeat them
			have = append(have, documentedFields(t, "list --json")...)
		}
		for _, f := range want {
			kit.Check(t, slices.Contains(have, f), "docs/reference.md says nothing of %q of %s", f, name)
		}
		for _, f := range have {
			kit.Check(t, slices.Contains(want, f), "docs/reference.md has %q of %s, which does not exist", f, name)
		}
	}
}

// jsonFields lists the JSON fields of a struct and of those within, as in "needs[].text". A journal line is told elsewhere.
func jsonFields(prefix string, typ reflect.Type) []string {
	var all []string
	for f := range jsonMembers(typ) {
		inner, name := f.Type, prefix+strings.Split(f.Tag.Get("json"), ",")[0]
		if f.Anonymous {
			all = append(all, jsonFields(prefix, inner)...)
			continue
		}
		all = append(all, name)
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice {
			inner, name = inner.Elem(), name+"[]"
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() && name != "history[]" {
			all = append(all, jsonFields(name+".", inner)...)
		}
	}
	return all
}

func jsonMembers(typ reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if f := typ.Field(i); (f.Anonymous || f.IsExported() && f.Tag.Get("json") != "-") && !yield(f) {
				return
			}
		}
	}
}

// auditedDocument lists the fields of the rows of a real report, whose type is nobody else's business.
func auditedDocument(t *testing.T) []string {
	out, _, _ := filledWithPDFs(t).audit("--json")
	var r struct {
		Documents []map[string]json.RawMessage
	}
	err := json.Unmarshal([]byte(out), &r)
	kit.Need(t, err == nil && len(r.Documents) != 0, "err = %v, out = %v, want no error, len(r.Documents) other than 0", err, out)
	names := map[string]bool{}
	for _, row := range r.Documents {
		for name := range row {
			names["documents[]."+name] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

var documentedRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .+ \\|$")

func documentedFields(t *testing.T, name string) []string {
	page := readPage(t, "../../docs/reference.md")
	_, rest, ok := strings.Cut(page, "<!-- fields of "+name+": begin -->\n")
	table, _, ok2 := strings.Cut(rest, "<!-- fields of "+name+": end -->")
	kit.Need(t, ok && ok2, "docs/reference.md has no fields of %s", name)
	var all []string
	for _, m := range documentedRow.FindAllStringSubmatch(table, -1) {
		kit.Check(t, !slices.Contains(all, m[1]), "docs/reference.md has %q of %s twice", m[1], name)
		all = append(all, m[1])
	}
	return all
}

func TestDocsReference_ExitCodesAreThePrograms(t *testing.T) {
	file := kit.Value(parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0))(t)
	var want, have []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "exit") {
			want = append(want, v.Values[0].(*ast.BasicLit).Value)
		}
		return true
	})
	_, rest, _ := strings.Cut(readPage(t, "../../docs/reference.md"), "## Exit codes\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(section, -1) {
		have = append(have, m[1])
	}
	kit.Check(t, len(want) != 0 && slices.Equal(have, want),
		"docs/reference.md has the exit codes %v, exit.go %v", have, want)
}

var linkPattern = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestDocs_LinksLeadSomewhere(t *testing.T) {
	for path, page := range docPages(t) {
		for _, m := range linkPattern.FindAllStringSubmatch(page, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue // of the world outside
			}
			target := path
			if to != "" {
				target = filepath.Join(filepath.Dir(path), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", path, m[1], err)
			} else if anchor != "" && !slices.Contains(anchorsOf(readPage(t, target)), anchor) {
				t.Errorf("%s: link to %s: no such heading", path, m[1])
			}
		}
	}
}

// anchorsOf names the headings of a page as links do.
func anchorsOf(page string) []string {
	var all []string
	for line := range strings.Lines(page) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !strings.HasPrefix(line, "#") || !ok {
			continue
		}
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title)))
	}
	return all
}

var (
	// where a shell expects a command: not in "usermod -aG invoices vaultd" nor in a message that is quoted
	commandPattern = regexp.MustCompile(`(?m)(?:^ *|sudo |-- |&& |\| |"|cmd/)vaultd(?: --config \S+)? ([a-z]+(?:-[a-z]+)*)\b([^|;#&\n]*)`)
	flagPattern    = regexp.MustCompile(`(?:^|\s)(--[a-z-]+|-[a-z])\b`)
)

// Every command that a page tells to type exists, with its flags.
func TestDocs_CommandsExist(t *testing.T) {
	helps, seen := map[string]string{}, 0
	for path, page := range docPages(t) {
		for _, m := range commandPattern.FindAllStringSubmatch(codeOf(page), -1) {
			seen++
			help, known := helps[m[1]]
			if !known {
				help, _, _ = runHere(m[1], "--help")
				helps[m[1]] = help
			}
			if !strings.Contains(help, "\n  vaultd "+m[1]) {
				t.Errorf("%s: no command %q in %q", path, m[1], strings.TrimSpace(m[0]))
				continue
			}
			for _, f := range flagPattern.FindAllStringSubmatch(m[2], -1) {
				if !regexp.MustCompile(`(?m)^ +(-\w, )?` + f[1] + `\b|^ +` + f[1] + `, `).MatchString(help) {
					t.Errorf("%s: %q has no flag %s", path, m[1], f[1])
				}
			}
		}
	}
	kit.Check(t, seen >= 40, "only %d commands found in the pages", seen)
}

var spanPattern = regexp.MustCompile("`([^`\n]+)`")

// codeOf gives what a page shows as code: blocks that are fenced or indented, with continued lines joined, and spans.
func codeOf(page string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", " ")) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			b.WriteString(line)
		default:
			for _, m := range spanPattern.FindAllStringSubmatch(line, -1) {
				b.WriteString(m[1] + "\n")
			}
		}
	}
	return b.String()
}

// docPages reads what people read, by path.
func docPages(t *testing.T) map[string]string {
	paths, err := filepath.Glob("../../docs/*.md")
	kit.Need(t, err == nil && len(paths) >= 5, "err = %v, paths = %v, want no error, len(paths) >= 5", err, paths)
	pages := map[string]string{}
	for _, path := range append(paths, "../../README.md") {
		pages[path] = readPage(t, path)
	}
	return pages
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	page := kit.Value(os.ReadFile(path))(t)
	return string(page)
}

// docs/reference.md quotes how the text of a pause begins where the service asked to wait, as the program says it.
func TestDocs_I26_PauseText(t *testing.T) {
	p := ingest.Pause{Asked: noon.Add(time.Hour), Cause: ledger.Cause{Text: "429 Too Many Requests"}}
	said := present.DescribePause(present.Clock{Now: noon, Location: time.UTC}, p)
	form := strings.NewReplacer("14:32", "TIME", "429 Too Many Requests", "…").Replace(said)
	line := regexp.MustCompile(`(?m)^\| ` + "`" + `pauses\[\]\.text` + "`" + ` \|.*`).FindString(readPage(t, "../../docs/reference.md"))
	kit.Check(t, strings.HasPrefix(form, "the service asks us to slow down until TIME") && strings.Contains(line, "`"+form+"`"),
		"docs/reference.md does not quote %q: %s", form, line)
	if p.Asked = noon; present.DescribePause(present.Clock{Now: noon, Location: time.UTC}, p) != p.Cause.Text {
		t.Errorf("after that time it says %q", present.DescribePause(present.Clock{Now: noon, Location: time.UTC}, p))
	}
}

// jsonNames lists the JSON fields of an object and of the first object within
// each list, as jsonFields does.
func jsonNames(t *testing.T, prefix, object string) (all []string) {
	t.Helper()
	var fields map[string]json.RawMessage
	err := json.Unmarshal([]byte(object), &fields)
	kit.Need(t, err == nil, "%v: %s", err, object)
	for name, value := range fields {
		all = append(all, prefix+name)
		var list []json.RawMessage
		if json.Unmarshal(value, &list) == nil && len(list) > 0 && list[0][0] == '{' {
			all = append(all, jsonNames(t, prefix+name+"[].", string(list[0]))...)
		}
	}
	return all
}
