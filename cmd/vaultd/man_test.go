// These tests are inside the package: they walk through the tree of commands.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vaultd/internal/test/kit"
)

//go:generate go test -run ^TestManPages$ . -args -write-pages

var writePages = flag.Bool("write-pages", false, "write the manual pages anew")

const manDir = "../../docs/man"

// The manual pages are the help texts in another form. They bear no date and no version, so that they change only when
// a text does.
func TestManPages(t *testing.T) {
	pages := manPages((&app{}).newRootCommand())
	if *writePages {
		kit.Must(t, os.MkdirAll(manDir, 0o755))
	}
	left := map[string]bool{}
	lying := kit.Value(filepath.Glob(filepath.Join(manDir, "*.8")))(t)
	for _, name := range lying {
		left[filepath.Base(name)] = true
	}
	for name, page := range pages {
		delete(left, name)
		path := filepath.Join(manDir, name)
		if *writePages {
			kit.Must(t, os.WriteFile(path, page, 0o644))
			continue
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, page) {
			t.Errorf("docs/man/%s is not what the help says (%v); make it anew with: make docs", name, err)
		}
	}
	for name := range left {
		if *writePages {
			kit.Want(t, "the error of Remove", os.Remove(filepath.Join(manDir, name)), nil)
			continue
		}
		t.Errorf("docs/man/%s belongs to no command; make the pages anew with: make docs", name)
	}
}

// Whoever is stuck types "help": every command explains itself and shows how it is called.
func TestHelp_EveryCommandExplainsItself(t *testing.T) {
	root := (&app{}).newRootCommand()
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		kit.Check(t, c.Long != "" && c.Example != "" && c.Short != "" && !strings.HasSuffix(c.Short, "."),
			"%s: short %q, %d bytes of long text, %d of examples", c.Name(), c.Short, len(c.Long), len(c.Example))
		for line := range strings.Lines(c.Long) {
			n := len([]rune(line))
			kit.Check(t, n <= 110, "%s: a line of %d characters does not fit a terminal: %s", c.Name(), n, line)
		}
		for line := range strings.Lines(c.Example) {
			checkExample(t, root, strings.TrimSpace(line))
		}
	}
}

// checkExample wants each "vaultd NAME --flag" of a line to exist.
func checkExample(t *testing.T, root *cobra.Command, line string) {
	t.Helper()
	words := strings.Fields(line)
	for i, w := range words {
		if w != "vaultd" || i+1 == len(words) {
			continue
		}
		c, _, err := root.Find(words[i+1 : i+2])
		if err != nil || c == root && !strings.HasPrefix(words[i+1], "-") {
			continue // a path or a user of that name
		}
		for _, f := range words[i+2:] {
			if f == "|" || f == "&&" || f == ">" {
				break
			}
			name, isFlag := strings.CutPrefix(f, "--")
			name, _, _ = strings.Cut(name, "=")
			kit.Check(t, !isFlag || c.Flag(name) != nil || c.InheritedFlags().Lookup(name) != nil,
				"example %q: %s has no flag --%s", line, c.Name(), name)
		}
	}
}

// manPages gives one page for the program and one for each command, by file name.
func manPages(root *cobra.Command) map[string][]byte {
	pages := map[string][]byte{}
	commands := slices.DeleteFunc(root.Commands(), func(c *cobra.Command) bool { return !c.IsAvailableCommand() || c.Name() == "help" })
	pages["vaultd.8"] = rootPage(root, commands)
	for _, c := range commands {
		pages["vaultd-"+c.Name()+".8"] = commandPage(c)
	}
	return pages
}

// roff writes a manual page.
type roff struct{ bytes.Buffer }

func newRoff(title, short string) *roff {
	r := &roff{}
	r.WriteString(".\\\" Made from the help texts by \"make docs\"; do not edit.\n")
	fmt.Fprintf(r, ".TH %s 8 \"\" vaultd \"vaultd manual\"\n", strings.ToUpper(escape(title)))
	r.section("NAME")
	fmt.Fprintf(r, "%s \\- %s\n", escape(title), escape(short))
	return r
}

func (r *roff) section(name string) { fmt.Fprintf(r, ".SH %s\n", name) }

// escape makes text plain for roff.
func escape(s string) string {
	var b strings.Builder
	for _, r := range strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s) {
		if r < unicode.MaxASCII {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\[u%04X]`, r) // read the same in every locale
	}
	return b.String()
}

// line writes one line of text, which roff must not take for a request.
func (r *roff) line(s string) {
	if s = escape(s); strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	r.WriteString(s + "\n")
}

// text writes paragraphs; indented lines stay as they are.
func (r *roff) text(s string) {
	verbatim := false
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\n")
		if indented := strings.HasPrefix(line, "  "); indented != verbatim && line != "" {
			r.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[indented])
			verbatim = indented
		}
		if line == "" {
			r.WriteString(".PP\n")
			continue
		}
		r.line(line)
	}
	if verbatim {
		r.WriteString(".fi\n")
	}
}

func (r *roff) synopsis(use string) {
	r.section("SYNOPSIS")
	words := strings.Fields(use)
	n := min(2, len(words))
	fmt.Fprintf(r, ".B %s\n", escape(strings.Join(words[:n], " ")))
	if rest := strings.Join(words[n:], " "); rest != "" {
		r.line(rest)
	}
}

func (r *roff) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	r.section(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		r.WriteString(".TP\n")
		name := `\-\-` + escape(f.Name)
		if f.Shorthand != "" {
			name = `\-` + f.Shorthand + ", " + name
		}
		fmt.Fprintf(r, ".B %s", name)
		if value != "" {
			fmt.Fprintf(r, " \\fI%s\\fR", escape(value))
		}
		r.WriteString("\n")
		if d := f.DefValue; d != "" && d != "false" && d != "[]" && !strings.Contains(usage, "default") {
			usage += " (default " + d + ")"
		}
		r.line(usage)
	})
}

func (r *roff) examples(s string) {
	r.section("EXAMPLES")
	r.WriteString(".nf\n")
	for line := range strings.Lines(s) {
		r.line(strings.TrimRight(line, "\n"))
	}
	r.WriteString(".fi\n")
}

func commandPage(c *cobra.Command) []byte {
	r := newRoff("vaultd-"+c.Name(), c.Short)
	r.synopsis(c.UseLine())
	r.section("DESCRIPTION")
	r.text(c.Long)
	r.flags("OPTIONS", c.LocalNonPersistentFlags())
	r.flags("COMMON OPTIONS", c.InheritedFlags())
	r.examples(c.Example)
	r.section("SEE ALSO")
	r.WriteString(".BR vaultd (8),\nwhich also lists the exit codes\n")
	return r.Bytes()
}

func rootPage(root *cobra.Command, commands []*cobra.Command) []byte {
	r := newRoff("vaultd", root.Short)
	r.synopsis("vaultd COMMAND [flags]")
	r.section("DESCRIPTION")
	r.text(root.Long)
	r.section("COMMANDS")
	for _, c := range commands {
		fmt.Fprintf(r, ".TP\n.BR vaultd\\-%s (8)\n", escape(c.Name()))
		r.line(c.Short)
	}
	r.flags("COMMON OPTIONS", root.PersistentFlags())
	r.section("EXIT STATUS")
	for _, c := range exitCodes {
		fmt.Fprintf(r, ".TP\n.B %d\n", c.code)
		r.line(c.means)
	}
	r.section("FILES")
	for _, f := range []struct{ name, what string }{
		{"/etc/vaultd/config.yaml", "the configuration; another one is named with --config"},
		{"/var/lib/vaultd", "state_dir: the ledger, the spool and the socket; local disk only"},
		{"/var/lib/vaultd/vaultd.sock", "where commands reach the running daemon"},
	} {
		fmt.Fprintf(r, ".TP\n.I %s\n", escape(f.name))
		r.line(f.what)
	}
	r.section("ENVIRONMENT")
	r.text("Variables VAULTD_<SECTION>_<KEY>, such as VAULTD_SERVICE_BASE_URL, stand over the values of the\nconfiguration.")
	return r.Bytes()
}

// exitCodes tells what each exit code means; scripts must take an unknown one for a failure.
var exitCodes = []struct {
	code  int
	means string
}{
	{exitDone, "done"},
	{exitFailed, "failed, or nothing was found"},
	{exitPerson, "done in part, or a person is needed"},
	{exitDifferences, "a check found differences"},
	{exitUsage, "wrong command line"},
	{exitData, "data that was given is wrong"},
	{exitUnavailable, "the service cannot be reached"},
	{exitInternal, "a mistake in vaultd"},
	{exitCreate, "cannot write"},
	{exitIO, "an input or output failed"},
	{exitTemporary, "try again later, or vaultd is running already"},
	{exitRights, "rights are missing, or credentials were refused"},
	{exitConfig, "the configuration is wrong"},
}
