package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/operator"
	"vaultd/internal/sanitize"
)

// decideArrival commits what a person decided about a received document.
func (a *app) decideArrival(ctx context.Context, v view, word, id, reason, digest string) error {
	x, err := v.findReceived(id)
	if err != nil {
		return err
	}
	h, err := a.operatorActions(v)
	if err != nil {
		return err
	}
	event := func(by ledger.Operator) arrival.Event { return arrival.RetryAsked{By: by} }
	switch word {
	case "close":
		event = func(by ledger.Operator) arrival.Event {
			return arrival.Abandoned{By: &by, Cause: ledger.Cause{Code: "closed", Text: "a person gave it up"}}
		}
	case "take":
		f, ok := x.FindDoubted()
		if !ok {
			return fail(exitFailed, fmt.Errorf("document %s: none of its files is in doubt", sanitize.Text(string(x.Item))), "see vaultd arrivals show "+sanitize.ShellWord(string(x.Item)))
		}
		if !strings.HasPrefix(f.Doubt.SHA256.String(), strings.ToLower(digest)) {
			return fail(exitFailed, fmt.Errorf("document %s: the file that looks wrong has the digest %s now", sanitize.Text(string(x.Item)), f.Doubt.SHA256), "look at the file again; see vaultd arrivals show "+sanitize.ShellWord(string(x.Item)))
		}
		event = func(by ledger.Operator) arrival.Event {
			return arrival.DoubtOverruled{By: by, File: f.Name, SHA256: f.Doubt.SHA256}
		}
	}
	after, err := h.ActOnArrival(ctx, x, operator.Person{UID: a.uid, Reason: reason}, event)
	if errors.Is(err, ledger.ErrIllegal) {
		return fail(exitFailed, fmt.Errorf("%s document %s: it is %s, and %s", word, sanitize.Text(string(x.Item)), x.State, explainNoDecision(x, word)), "see vaultd arrivals show "+sanitize.ShellWord(string(x.Item)))
	}
	if err != nil {
		return err
	}
	if a.json {
		j, err := v.newArrivalJSON(after)
		return errors.Join(err, writeJSON(a.stdout, j))
	}
	return a.tellArrival(v, after, word)
}

// explainNoDecision says why nothing is left to decide about a received document.
func explainNoDecision(x arrival.Arrival, word string) string {
	f, isDoubted := x.FindDoubted()
	switch isMeant := isDoubted && word == "take" && x.State == arrival.Fetching; {
	case isMeant && f.Doubt.Overruled:
		return "a person takes its file as it is already"
	case isMeant:
		return "other bytes came for its file meanwhile: look again"
	case x.State == arrival.Held:
		return "it lies in the drop folder: what becomes of it there is decided with vaultd show, retry and close"
	}
	return "nothing of it is due any more"
}

func (a *app) tellArrival(v view, x arrival.Arrival, word string) error {
	next := "It is tried now."
	switch {
	case word == "close":
		next = "Nothing more of it is fetched, and it is not announced again. Its notification stays at the network: nothing is deleted there that is not held here."
	case word == "take":
		next = "Its file is taken as it is."
		if v.state == nil {
			next += " vaultd is not running: the next run does it."
		}
	case v.state == nil:
		next = "vaultd is not running: it is tried with the next run."
	}
	_, err := fmt.Fprintf(a.stdout, "received document %s is %s. %s\n", sanitize.Text(string(x.Item)), x.State, next)
	return err
}
