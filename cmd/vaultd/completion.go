package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
		Args:      takes("SHELL (bash, zsh, fish or powershell)"),
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
		"drop":      a.suggestions(suggestDrops),
		"vault":     a.suggestions(suggestVaults),
		"sort":      cobra.FixedCompletions(orderNames, cobra.ShellCompDirectiveNoFileComp),
		"format":    cobra.FixedCompletions([]string{"html", "csv", "json"}, cobra.ShellCompDirectiveNoFileComp),
		"separator": cobra.FixedCompletions([]string{",", ";"}, cobra.ShellCompDirectiveNoFileComp),
	}
	files := []string{"config", "output", "dir", "secret-file"} // their values are paths, which the shell completes
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
			c.ValidArgsFunction = a.suggestions(c.Name())
		case c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && !strings.Contains(c.Use, "FILE") && !strings.Contains(c.Use, "PATH"):
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
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
