package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why X",
		Short: "why one folder is where it is, what happens next, and what you can do",
		Long: `Says in words what is certain about one folder, why it is where it is, what happens
next and when, and what a person can do, with the command lines for it.

For a folder whose fate at the archive is unclear it shows the evidence so far: what
the archive answered, how many equal answers of how many are counted, and before
when they are not believed.

While vaultd runs, it also knows folders that were not taken yet, and which route to
the archive rests and why.`,
		Example: `  vaultd why "Huber 88"
  vaultd why 06gzgbs2d2n43zeqyj2594nkn0 --json | jq .next`,
		Args: expectArgs(xMeans),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.runWhy(ctx, v, args[0]) })
		},
	}
}

func (a *app) runWhy(ctx context.Context, v view, x string) error {
	w, ok, err := a.explainName(ctx, v, x)
	if err != nil || !ok {
		return err
	}
	if a.json {
		return writeJSON(a.stdout, w)
	}
	_, err = a.stdout.Write(w.Text(v.Clock))
	return err
}

// explainName explains the entry that x names. When x names something that was not taken, it prints that and ok is false.
func (a *app) explainName(ctx context.Context, v view, x string) (w present.Explanation, ok bool, err error) {
	if es, err := a.findByName(ctx, v, x); err == nil && len(es) == 0 {
		found, err := v.findNotTaken(func(name string) bool { return name == x })
		if err != nil || len(found) > 0 {
			return w, false, errors.Join(err, a.printNotTaken(v, found))
		}
	}
	e, err := a.findOne(ctx, v, x)
	if err != nil {
		return w, false, err
	}
	d, err := present.ReadDossier(ctx, v.ledger, e, v.Location)
	if err != nil {
		return w, false, err
	}
	return v.situationOf(e).Explain(d), true, nil
}

// situationOf gives what the explanation of an entry needs beside it.
func (v view) situationOf(e ledger.Entry) present.Situation {
	s := present.Situation{Clock: v.Clock, AlertAfter: v.cfg.Status.AlertAfter, UnclearGrace: v.cfg.Status.UnclearGrace, FolderPath: returnedFolderPath(v.cfg, e), Running: v.state != nil}
	if v.state == nil {
		return s
	}
	now := v.state()
	s.Pauses = now.Pauses
	for _, d := range now.Drops {
		s.Drops = append(s.Drops, present.DropStatus{Name: d.Name, Paused: d.Paused, Do: d.Do})
	}
	return s
}
