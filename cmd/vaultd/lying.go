package main

import (
	"fmt"
	"path"
	"time"
)

// lyingThing is something that lies in a drop folder and was not taken.
type lyingThing struct {
	Folder string    `json:"folder"`
	Drop   string    `json:"drop"`
	State  string    `json:"state"` // always "not-taken"
	Reason string    `json:"reason"`
	Detail *string   `json:"detail"`
	Since  time.Time `json:"since"`

	path string
}

// lying finds what was not taken yet, as far as a running daemon keeps the names.
func (v view) lying(wanted func(name string) bool) []lyingThing {
	if v.state == nil {
		return nil
	}
	var all []lyingThing
	for _, d := range v.state().Drops {
		for _, w := range d.Watch.NotTaken {
			for _, n := range w.Names {
				if wanted(n.Name) || wanted(path.Join(d.Name, n.Name)) {
					all = append(all, lyingThing{n.Name, d.Name, "not-taken", string(w.Reason), known(n.Detail), n.Since.UTC(), path.Join(d.Path, n.Name)})
				}
			}
		}
	}
	return all
}

func (a *app) tellLying(v view, found []lyingThing) error {
	for _, l := range found {
		if a.json {
			if err := writeJSON(a.stdout, l); err != nil {
				return err
			}
			continue
		}
		p := &page{}
		fmt.Fprintf(p, "%s (%s)\n", safe(l.Folder), safe(l.Drop))
		p.line("State", "not taken, seen since %s", v.brief(l.Since))
		p.below("It lies in the drop folder as it was dropped; nothing of it was sent.")
		p.line("Because", "%s", safe(l.Reason))
		if l.Detail != nil {
			p.below(*l.Detail)
		}
		p.head("YOU CAN")
		p.WriteString("  put right what is missing; it is taken by itself then. To see whether it is good:\n")
		fmt.Fprintf(p, "      vaultd validate %s\n", shellWord(l.path))
		if _, err := a.stdout.Write(p.Bytes()); err != nil {
			return fail(exitIO, fmt.Errorf("write: %w", err), "")
		}
	}
	return nil
}
