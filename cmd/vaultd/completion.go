package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "completion of commands, flags, states and drops for your shell",
		Long: `Prints a script for bash, zsh, fish or powershell that completes commands and flags,
the states of --state, and the names of --drop and --vault from the configuration.`,
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
				return root.GenBashCompletionV2(a.stdout, true)
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

// completeFlags completes the values of flags by their names, on every command that has them.
func (a *app) completeFlags(root *cobra.Command) {
	ofDrops := func(value func(dropConfig) string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			cfg, err := a.loadConfig()
			if err != nil { // nothing to offer; running the command says why
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var all []string
			for _, d := range cfg.Drops {
				all = append(all, value(d))
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		}
	}
	by := map[string]cobra.CompletionFunc{
		"state":  completeStates,
		"drop":   ofDrops(func(d dropConfig) string { return d.Name }),
		"vault":  ofDrops(func(d dropConfig) string { return d.Vault }),
		"reason": cobra.NoFileCompletions,
		"limit":  cobra.NoFileCompletions,
	}
	for _, c := range root.Commands() {
		for flag, fn := range by {
			if c.Flags().Lookup(flag) != nil && c.Name() != "emulate" { // its vaults are made up
				_ = c.RegisterFlagCompletionFunc(flag, fn) // fails only where the command completes it itself
			}
		}
		if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && strings.Contains(c.Use, " X") {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// completeStates completes the last of several states.
func completeStates(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var all []string
	for _, s := range append(stateNames(), "open") {
		all = append(all, before+s)
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
