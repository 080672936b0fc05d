package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/apicall"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/networkapi"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

const mayNotify = "post notifications about received documents"

// acceptCommands are the words that a person may say about a received document.
func (a *app) acceptCommands() []*cobra.Command {
	var isTechnical bool
	accept := a.wordCommand("accept", func() arrival.Word { return arrival.Accept })
	accept.Short = "tell the sender of a received document that it is accepted"
	accept.Long = `Tells the business network that a received document is accepted: BusinessAccept,
DocumentAccepted. Agree with its sender first that he wants to hear it. vaultd never says
it by itself, and it cannot be taken back. ID is that of "vaultd arrivals".
` + wordHelp
	accept.Example = `  vaultd accept 46aa4caf-b373-11ed-bbfc-cfd535abf178 --reason "checked by purchasing"`
	reject := a.wordCommand("reject", func() arrival.Word {
		if isTechnical {
			return arrival.RejectTechnical
		}
		return arrival.Reject
	})
	reject.Short = "tell the sender of a received document that it is rejected"
	reject.Long = `Tells the business network that a received document is rejected: BusinessReject,
DocumentRejected. Agree with its sender first that he wants to hear it. vaultd never says
it by itself, and it cannot be taken back. ID is that of "vaultd arrivals". The document
stays in the archive.

With --technical: TechnicalReject, Undelivered, for a document that cannot be read. It is
possible until the network was told that the document was received (network.confirm); that
is not said any more then.
` + wordHelp
	reject.Example = `  vaultd reject 46aa4caf-b373-11ed-bbfc-cfd535abf178 --reason "the price is wrong" --tell
  vaultd reject 46aa4caf-b373-11ed-bbfc-cfd535abf178 --technical --reason "the PDF cannot be opened"`
	reject.Flags().BoolVar(&isTechnical, "technical", false, "it cannot be read, so it does not reach its recipient")
	return []*cobra.Command{accept, reject}
}

const wordHelp = `
The network gets the two codes and the time alone: the reason stays here, unless --tell
says that the sender gets it as well, word for word. Who decided stands in the journal for
ever, with a digest of the reason; "vaultd arrivals show ID" says what was said, when, by
whom, and whether the network took it.

It is said once. Where no answer comes, it may have been said, and vaultd does not repeat
it: ask its sender or the provider, then say it again with --again. Another word is
refused unless the network certainly did not take the first one.`

func (a *app) wordCommand(name string, word func() arrival.Word) *cobra.Command {
	var again, tell bool
	c := &cobra.Command{Use: name + " ID --reason TEXT", Args: expectArgs("ID (of a received document, as vaultd arrivals shows it)"), DisableFlagsInUseLine: true}
	reason := reasonFlag(c)
	c.Flags().BoolVar(&again, "again", false, "it may have been said before: say it once more")
	c.Flags().BoolVar(&tell, "tell", false, "the sender gets the reason as well, word for word")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := requireReason(c, *reason); err != nil {
			return err
		}
		if n := len(strings.TrimSpace(*reason)); tell && n > networkapi.MaxDescription {
			return usageError{fmt.Errorf("--reason has %d bytes; the network takes at most %d of them with --tell", n, networkapi.MaxDescription)}
		}
		return a.withLedger(c, args, func(ctx context.Context, v view) error {
			return a.sayWord(ctx, v, args[0], operator.SpokenWord{Word: word(), Again: again, Tell: tell}, strings.TrimSpace(*reason))
		})
	}
	return c
}

// sayWord says a person's word about a received document, and tells what became of it.
func (a *app) sayWord(ctx context.Context, v view, id string, w operator.SpokenWord, reason string) error {
	x, err := v.findReceived(id)
	if err != nil {
		return err
	}
	if v.cfg.Network.BaseURL == "" {
		return fail(exitConfig, errors.New("the business network is not configured"), "add a section network with base_url and auth; docs/network.md says how")
	}
	if err := checkBinding(v.ledger.Info(), v.cfg); err != nil {
		return err
	}
	client, err := newNetworkClient(v.cfg, a.env)
	if err != nil {
		return err
	}
	h, err := a.operatorActions(v)
	if err != nil {
		return err
	}
	after, answer, err := h.SayWord(ctx, x, operator.Person{UID: a.uid, Reason: reason}, w, client)
	if err != nil {
		return refuseWord(x, w.Word, err)
	}
	if a.json {
		j, err := v.newArrivalJSON(after)
		if err := errors.Join(err, writeJSON(a.stdout, j)); err != nil {
			return err
		}
	}
	if answer != nil {
		return explainAnswer(after, w, answer)
	}
	if !a.json {
		reason := "The reason stays here."
		if w.Tell {
			reason = "The sender gets the reason as well."
		}
		_, err = fmt.Fprintf(a.stdout, "%s was said of document %s, and the network took it. %s\n", w.Word.Pair(), sanitize.Text(string(x.Item)), reason)
	}
	return err
}

// explainAnswer says what is certain after a call that failed, and what to do.
func explainAnswer(x arrival.Arrival, w operator.SpokenWord, answer error) error {
	e, id := apicall.AsError(answer), sanitize.ShellWord(string(x.Item))
	if e.Outcome == apicall.OutcomeUnknown {
		return fail(exitPerson, fmt.Errorf("%s MAY HAVE BEEN SAID of document %s: %w", w.Word.Pair(), id, answer), adviseAgain(id, w.Word, w.Tell))
	}
	return fail(exitCodeOfRemote(e), fmt.Errorf("%s was not said of document %s: %w", w.Word.Pair(), id, answer), adviseOnNetwork(e, mayNotify))
}

// adviseAgain says how a word is said again that may have been said.
func adviseAgain(id string, w arrival.Word, tell bool) string {
	command := fmt.Sprintf("vaultd %s %s --reason TEXT --again", commandOf(w), id)
	if tell {
		command += " --tell"
	}
	return "ask its sender or the provider whether it arrived; only if not, say it again with " + command
}

// commandOf is the command that says a word.
func commandOf(w arrival.Word) string {
	if w == arrival.RejectTechnical {
		return "reject --technical"
	}
	return string(w)
}

// refuseWord says why a word is not possible, and what can be done instead.
func refuseWord(x arrival.Arrival, w arrival.Word, err error) error {
	id := sanitize.ShellWord(string(x.Item))
	show := "see vaultd arrivals show " + id
	refuse := func(why, hint string) error {
		return fail(exitFailed, fmt.Errorf("%s of document %s: nothing was said: %s", w.Pair(), id, why), hint)
	}
	before := "another word"
	if said, ok := x.StandingWord(); ok {
		before = said.Word.Pair()
	}
	switch {
	case errors.Is(err, operator.ErrNothingSaid):
		return fail(exitFailed, err, "see vaultd status")
	case errors.Is(err, arrival.ErrNotHere):
		return refuse("it is "+x.State.String()+", so nobody can have looked at it", show+"; a document that cannot be read: vaultd reject "+id+" --technical --reason TEXT")
	case errors.Is(err, arrival.ErrConfirmed):
		return refuse("the network was told, or may have been told, that it was received", "vaultd reject "+id+" --reason TEXT says that its recipient rejects it")
	case errors.Is(err, arrival.ErrSaidBefore):
		return refuse("it was said before, and the network took it", show)
	case errors.Is(err, arrival.ErrContradicts):
		return refuse(before+" was said before, and the network took it or may have taken it", show+"; to take a word back, speak with its sender")
	case errors.Is(err, arrival.ErrMaybeSaid):
		said, _ := x.StandingWord()
		return refuse("it may have been said before", adviseAgain(id, w, said.Told))
	case errors.Is(err, arrival.ErrBeingSaid):
		return refuse("a word about it is being said at this moment, or was when vaultd was stopped", "wait two minutes; "+show)
	case errors.Is(err, ledger.ErrIllegal):
		return refuse("too many words were said of it", show)
	}
	return err
}

// saidJSON is one word that a person said about a received document.
type saidJSON struct {
	Word         string     `json:"word"` // accept, reject or reject-technical
	ResponseCode string     `json:"responseCode"`
	ActionCode   string     `json:"actionCode"`
	At           *time.Time `json:"at"`
	UID          uint32     `json:"uid"`     // who said it
	Outcome      string     `json:"outcome"` // taken, not-taken, or unanswered: the network may have taken it
	AnsweredAt   *time.Time `json:"answeredAt"`
	Cause        string     `json:"cause"`  // why it is unanswered or was not taken; empty: it was taken, or nobody heard anything
	Reason       *string    `json:"reason"` // null: it was erased
	Told         bool       `json:"told"`   // the reason was to be said with it
}

// listSaid lists the words that people said about a received document.
func (v view) listSaid(x arrival.Arrival) ([]saidJSON, error) {
	all := []saidJSON{}
	if len(x.Said) == 0 {
		return all, nil
	}
	notes, err := v.ledger.Notes(x.Key)
	for _, s := range x.Said {
		j := saidJSON{Word: string(s.Word), At: timeJSON(s.At), UID: s.UID, Outcome: s.Outcome.String(), AnsweredAt: timeJSON(s.AnsweredAt), Cause: s.Cause.Text, Reason: present.TextOrNil(notes[s.Rev].Text), Told: s.Told}
		j.ResponseCode, j.ActionCode = s.Word.Codes()
		all = append(all, j)
	}
	return all, err
}

// describeSaid says in a line what a person said, and whether the network took it.
func (v view) describeSaid(s saidJSON) string {
	outcome := map[string]string{arrival.Taken.String(): "the network took it", arrival.NotTaken.String(): "the network did not take it"}[s.Outcome]
	if outcome == "" {
		outcome = "the network MAY HAVE TAKEN it"
	}
	text := fmt.Sprintf("%s/%s, %s, by %s: %s", s.ResponseCode, s.ActionCode, v.Exact(*s.At), present.UserName(s.UID), outcome)
	if s.Reason != nil {
		text += "; " + sanitize.Text(*s.Reason)
	}
	if s.Told && s.Outcome != arrival.NotTaken.String() {
		text += " [with the reason]"
	}
	if s.Cause != "" {
		text += " (" + sanitize.Name(s.Cause, 200) + ")"
	}
	return text
}
