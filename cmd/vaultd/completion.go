package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/statedir"
)

// The script that cobra makes for bash neither takes a word whose quote is still open nor quotes what several names with
// blanks have in common.
//
//go:embed completion.bash
var bashCompletion string

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "completion of commands, flags and names for your shell",
		Long: `Prints a script for bash, zsh, fish or powershell that completes commands, flags and
their values, and the names of folders: of those that the command can do something
with, the newest first. Keys, clientUUIDs and bumIds are completed from their third
character on. The running vaultd is asked; where none runs, the ledger is looked at.
What is not known within half a second is not suggested.`,
		Example: `  vaultd completion bash | sudo tee /etc/bash_completion.d/vaultd > /dev/null
  vaultd completion zsh > "${fpath[1]}/_vaultd"
  vaultd completion fish > ~/.config/fish/completions/vaultd.fish
  vaultd completion powershell | Out-String | Invoke-Expression`,
		Args:      expectArgs("SHELL (bash, zsh, fish or powershell)"),
		ValidArgs: shells,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				_, err := io.WriteString(a.stdout, bashCompletion)
				return err
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
			return usageError{fmt.Errorf("%q is no shell that is known; known are %s", args[0], strings.Join(shells, ", "))}
		},
	}
}

// completeFlags completes arguments by the commands, and the values of flags by their names, on every command that has them.
func (a *app) completeFlags(root *cobra.Command) {
	by := map[string]cobra.CompletionFunc{
		"state":     completeStates,
		"drop":      a.suggestArguments(suggestDrops),
		"vault":     a.suggestArguments(suggestVaults),
		"sort":      cobra.FixedCompletions(orderNames, cobra.ShellCompDirectiveNoFileComp),
		"type":      cobra.FixedCompletions(archive.DocumentTypes, cobra.ShellCompDirectiveNoFileComp),
		"route":     cobra.FixedCompletions(routeNames, cobra.ShellCompDirectiveNoFileComp),
		"format":    cobra.FixedCompletions([]string{"html", "csv", "json"}, cobra.ShellCompDirectiveNoFileComp),
		"separator": cobra.FixedCompletions([]string{",", ";"}, cobra.ShellCompDirectiveNoFileComp),
	}
	files := []string{"config", "output", "dir", "secret-file", "extracts"} // their values are paths, which the shell completes
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			fn, known := by[f.Name]
			switch {
			case c.Name() == "emulate" && known || slices.Contains(files, f.Name): // the vaults of emulate are made up
				return
			case !known:
				fn = cobra.NoFileCompletions
			}
			_ = c.RegisterFlagCompletionFunc(f.Name, fn) // fails only where the command completes it itself
		})
		switch {
		case suggestFor[c.Name()] != nil:
			c.ValidArgsFunction = a.suggestArguments(c.Name())
		case c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && !strings.Contains(c.Use, "FILE") && !strings.Contains(c.Use, "PATH"):
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// completeFirstOf completes the first argument from words that are known.
func completeFirstOf(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeStates completes the last of several states.
func completeStates(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var all []string
	for _, s := range append(stateNames(), "open") {
		if strings.HasPrefix(before+s, typed) {
			all = append(all, before+s)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// A person waits at the shell while names are suggested.
const (
	suggestPatience = 500 * time.Millisecond // after it nothing is suggested
	searchPatience  = 300 * time.Millisecond // after it what was found so far is suggested
	suggestAtMost   = 50
	leastNumber     = 3 // characters of a number that must be typed before numbers are suggested
)

// suggestFor says for each command that takes a folder which entries it can do something with.
var suggestFor = map[string]func(ledger.Entry) bool{
	"show":    func(ledger.Entry) bool { return true },
	"why":     func(ledger.Entry) bool { return true },
	"receipt": isArchived,
	"fetch":   func(e ledger.Entry) bool { return isArchived(e) && e.ArchivedRemote != "" },
	"retry":   isAllowed(present.Retry),
	"close":   isAllowed(present.Close),
	"release": isAllowed(present.Release),
	"hold":    isAllowed(present.Hold),
	"unhold":  isAllowed(present.Unhold),
}

func isArchived(e ledger.Entry) bool { return e.State == ledger.Archived }

func isAllowed(one present.Action) func(ledger.Entry) bool {
	return func(e ledger.Entry) bool { return one.Check(e) == nil }
}

// What is suggested beside entries.
const (
	suggestDrops  = "drops"
	suggestVaults = "vaults"
)

// suggestCommand answers the shell's question inside the daemon. So every user that may give commands gets suggestions, even one
// that may not read the configuration or the ledger.
func (a *app) suggestCommand() *cobra.Command {
	return &cobra.Command{
		Use: "suggest WHAT TYPED", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if a.inside == nil {
				return usageError{errors.New("suggest is a question that completion asks the running vaultd")}
			}
			v := a.insideView()
			for _, line := range v.listSuggestions(args[0], args[1], v.entriesWith(c.Context(), args[1]), v.ledger.EntriesNewestFirst) {
				if _, err := fmt.Fprintln(a.stdout, line); err != nil {
					return fail(exitIO, fmt.Errorf("write: %w", err), "")
				}
			}
			return nil
		},
	}
}

// suggestArguments completes one argument or the value of a flag. When something fails it suggests nothing and prints nothing: the
// command itself will report the error.
func (a *app) suggestArguments(what string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if suggestFor[what] != nil && len(args) > 0 {
			return nil, directive
		}
		answer := make(chan []string, 1)
		go func() { answer <- a.askForSuggestions(c.Context(), what, typed) }() // one that hangs on a disk ends with this process, in a moment
		patience := time.NewTimer(suggestPatience)
		defer patience.Stop()
		select {
		case lines := <-answer:
			return lines, directive
		case <-patience.C:
			return nil, directive
		}
	}
}

// askForSuggestions asks the daemon. When none runs, it reads the ledger in this process.
func (a *app) askForSuggestions(ctx context.Context, what, typed string) []string {
	cfg, err := a.configForAsking()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, suggestPatience)
	defer cancel()
	var out bytes.Buffer
	code, err := callControl(ctx, socketPath(cfg), []string{"suggest", "--", what, typed}, &out, io.Discard)
	switch {
	case err == nil && code == exitDone:
		return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	case !errors.Is(err, errNoDaemon) || cfg.Unusable != nil:
		return nil
	}
	v := view{Clock: present.Clock{Now: time.Now(), Location: cfg.Location}, cfg: cfg}
	if suggestFor[what] == nil {
		return v.listSuggestions(what, typed)
	}
	var lines []string
	err = a.asOwner(cfg.StateDir, func() error {
		return statedir.PeekLedger(cfg.StateDir, func(p *boltledger.Ledger) error {
			lines = v.listSuggestions(what, typed, p.EntriesNewestFirst)
			return nil
		})
	})
	if err != nil {
		return nil
	}
	return lines
}

// entryWalk visits entries, newest first.
type entryWalk func(fn func(ledger.Entry) error) error

// entriesWith visits the entries that the catalog knows with all words of a text, and others. It visits none where the text has no words.
// Of a key or number the catalog knows only longer beginnings than may be typed here.
func (v view) entriesWith(ctx context.Context, typed string) entryWalk {
	words := strings.Fields(typed)
	return func(fn func(ledger.Entry) error) error {
		if len(words) == 0 {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, searchPatience)
		defer cancel()
		return v.catalog.FindCandidates(ctx, catalog.NewQuery(words), func(string) {}, fn)
	}
}

// listSuggestions returns what begins with typed, each with a tab and a description, from the first walk that leads to any.
func (v view) listSuggestions(what, typed string, walks ...entryWalk) []string {
	switch what {
	case suggestDrops:
		return v.suggestFromDrops(typed, func(d config.Drop) (string, string) { return d.Name, d.Path })
	case suggestVaults:
		return v.suggestFromDrops(typed, func(d config.Drop) (string, string) { return d.Vault, "drop " + d.Name })
	}
	fits := suggestFor[what]
	if fits == nil {
		return nil
	}
	until := time.Now().Add(searchPatience)
	var s nameSearch
	for _, walk := range walks {
		s = nameSearch{typed: typed, fits: fits, superseded: map[archive.Key]bool{}, named: map[string]int{}, until: until}
		if err := walk(s.visitEntry); err != nil && !errors.Is(err, errEnough) {
			return nil // damaged: the command itself says so
		}
		if len(s.found) > 0 {
			break
		}
	}
	var lines []string
	for _, f := range s.found {
		text := f.text
		if f.isName && s.named[f.text] > 1 && typed == "" { // the name alone would not say which one is meant
			text = f.entry.Key.String()
		}
		lines = append(lines, text+"\t"+sanitize.Text(f.entry.Folder+", "+present.StateText(f.entry)+", "+f.entry.Drop+", "+v.Brief(f.entry.SeenAt)))
	}
	return removeDuplicates(lines)
}

func (v view) suggestFromDrops(typed string, of func(config.Drop) (value, words string)) (lines []string) {
	for _, d := range v.cfg.Drops {
		if value, words := of(d); strings.HasPrefix(value, typed) && canBeTyped(value) {
			lines = append(lines, value+"\t"+sanitize.Text(words))
		}
	}
	return removeDuplicates(lines)
}

// removeDuplicates keeps the first line of each text before the tab.
func removeDuplicates(lines []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(lines, func(line string) bool {
		text, _, _ := strings.Cut(line, "\t")
		was := seen[text]
		seen[text] = true
		return was
	})
}

// nameSearch looks for the newest entries that a person may mean.
type nameSearch struct {
	typed string
	fits  func(ledger.Entry) bool
	until time.Time

	superseded map[archive.Key]bool // entries that a newer one repeats
	named      map[string]int       // how many entries were met under each name
	found      []suggested
}

type suggested struct {
	text   string
	isName bool
	entry  ledger.Entry
}

// visitEntry looks at one entry, which is older than all before. It returns errEnough when it needs no more.
func (s *nameSearch) visitEntry(e ledger.Entry) error {
	if len(s.found) == suggestAtMost || !time.Now().Before(s.until) {
		return errEnough
	}
	s.superseded[e.Supersedes] = true
	if s.superseded[e.Key] {
		return nil
	}
	s.named[e.Folder]++
	if !s.fits(e) {
		return nil
	}
	if text, isName, ok := s.matchTyped(e); ok && !(isName && s.typed != "" && s.named[e.Folder] > 1) {
		s.found = append(s.found, suggested{text, isName, e})
	}
	return nil
}

// matchTyped returns the folder's name of e, or else one of its numbers, when that begins with what was typed. The key replaces a name
// that cannot be typed.
func (s *nameSearch) matchTyped(e ledger.Entry) (text string, isName, ok bool) {
	if strings.HasPrefix(e.Folder, s.typed) && canBeTyped(e.Folder) {
		return e.Folder, true, true
	}
	if s.typed == "" {
		return e.Key.String(), false, true
	}
	if len(s.typed) < leastNumber {
		return "", false, false
	}
	numbers := []string{e.Key.String(), string(present.RemoteNumber(e))}
	if !e.ID.IsZero() {
		numbers = append(numbers, e.ID.String())
	}
	for _, n := range numbers {
		if strings.HasPrefix(n, s.typed) && canBeTyped(n) {
			return n, false, true
		}
	}
	return "", false, false
}

// canBeTyped reports whether a text can be used in a command line after the shell has quoted it: it has no invisible or control
// characters, and it does not look like a flag.
func canBeTyped(text string) bool {
	return sanitize.Text(text) == text && strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "-") &&
		!strings.ContainsFunc(text, unicode.IsControl)
}
