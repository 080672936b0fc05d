package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// commandGroups puts the commands in an order that a person understands; what stands in none comes last.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"look", "Look:", []string{"status", "list", "find", "show", "why"}},
	{"decide", "Decide (each is journaled with who decided):", []string{"retry", "close", "release", "hold", "unhold", "resume"}},
	{"prove", "Prove:", []string{"receipt", "audit", "verify", "fetch", "index", "backup"}},
	{"recover", "Recover:", []string{"restore", "rebuild", "reconcile"}},
	{"setup", "Set up and run:", []string{"init", "check", "doctor", "vaults", "validate", "run"}},
	{"try", "Try:", []string{"demo", "emulate"}},
}

func groupCommands(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.commands, c.Name()) {
				c.GroupID = g.id
			}
		}
	}
}
