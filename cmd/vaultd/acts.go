package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

// act is one thing that a person may decide about an entry.
type act struct {
	present.Action
	short, long, example string
	asksArchive          bool // about every registration, before anything is decided

	done func(before, after ledger.Entry) string // what is so now
}

const xMeans = "X (a key, clientUUID, bumId or folder name)"

func closeAct() act {
	return act{
		Action: present.Close, short: "settle what needs a person, by decision",
		long: `Ends the need to look at one folder, by a person's decision.

A rejected folder: somebody has seen to it, and it is no alarm any more. A correction
that is dropped again, or taken again with "vaultd retry", does the same by itself.

An archived folder that the archive contradicts, or whose removal was stopped halfway:
somebody has cleared that up, and it is no alarm any more. The flag stays, and what is
left of the folder is kept.

A folder of which certainly nothing was sent yet (a wrong drop, a wrong vault, one that
is on hold): it goes back to _rejected, to be dropped where it belongs.

An archived document with the invoice number of another one, or with a date that can
hardly be right: somebody has looked at it and lets it stand. "vaultd status" does not
name it any more; the audit does, as looked at.

A folder that the archive holds more than once: somebody has seen to it. The flag stays.

A folder that is quarantined or unclear: it ends as rejected IN DOUBT and is flagged
so for ever, in every report, because something of it may be in the archive. Its
folder goes back to _rejected. Should the archive later say that it has it after all,
that is an alarm. Ask the provider first; see "vaultd why X".

Who decided stands in the journal for ever, with a digest of the reason. The reason
itself is shown by show and why.`,
		example: `  vaultd close "Huber 88" --reason "paper copy sent, supplier told"
  vaultd close 06gzgbs2d2n43zeqyj2594nkn0 --reason "provider confirms: nothing arrived, ticket 4711"`,
		done: func(before, after ledger.Entry) string {
			switch {
			case before.State == after.State && after.Contradicted:
				return "It is resolved: nobody needs to look at it any more. That " + present.WordsOf(after.Route).Contradictor + " contradicted it stays flagged for ever."
			case after.Reviewed && !before.Reviewed:
				return "It counts as looked at: it stays archived as it is, and the audit goes on to name it as a remark."
			case before.State == after.State:
				return "It is resolved: nobody needs to look at it any more."
			case after.InDoubt:
				return "It ended as rejected IN DOUBT and is flagged so for ever. " + present.WordsOf(after.Route).Lookup
			}
			return "It ended as rejected, and certainly nothing of it was sent. Its folder goes back to _rejected; drop it where it belongs."
		},
	}
}

func releaseAct() act {
	return act{
		Action: present.Release, short: "register and send again by decision, though it may be double",
		long: `Sends a folder that is quarantined or unclear once more, by a person's decision.

vaultd does not do this by itself, because content of it may be in the archive
already: then it is archived twice, and billed twice. The entry is flagged as
possibly double for ever. Ask the provider first; see "vaultd why X" for what the
archive has said so far. The archive is asked about every registration of it before
anything is decided: if one turns out to be archived, nothing is sent. While it does
not answer, nothing is changed, with exit code 69 where it cannot be reached.

A PDF that may have been delivered is sent again too, and flagged as possibly processed
twice. Nobody can be asked about it: look for it in the accounts-payable system first.

A document of the business network is sent again under the same number, which the
network refuses if it has it: no double can come of that. Only where the number is taken
(cause number-taken) it goes under a new one, and may arrive twice: ask the provider first.

Who decided stands in the journal for ever, with a digest of the reason. The reason
itself is shown by show and why.`,
		example:     `  vaultd release "Müller 4711" --reason "provider found nothing under bum-1, ticket 4712"`,
		asksArchive: true,
		done: func(_, after ledger.Entry) string {
			switch {
			case after.State == ledger.Archived && after.IsArchivedTwice():
				return "The archive says that it is archived, and more than once: nothing is sent. Ask the provider to remove what is too many."
			case after.State == ledger.Archived:
				return "The archive has said meanwhile that it is archived: nothing is sent."
			case after.State == ledger.Uploaded:
				return "The archive says that it is working on it: nothing is sent, and it is asked about until it ends."
			case after.Hold:
				return "It is registered and sent again once the hold is taken away: " + present.Unhold.Command(after)
			case after.PossibleDouble:
				return present.WordsOf(after.Route).ReleasedAgain
			}
			return present.WordsOf(after.Route).SentAgain
		},
	}
}

func holdAct() act {
	return act{
		Action: present.Hold, short: "no further step and no disposal, until unhold",
		long: `Stops one folder: nothing of it is packed, registered, sent, moved or removed any
more until "vaultd unhold". What is under way at this moment is finished first. Other
folders go on. An archived folder on hold is not removed when its grace is over.`,
		example: `  vaultd hold "Müller 4711"
  vaultd hold "Müller 4711" --reason "supplier will send a corrected invoice"`,
		done: func(_, after ledger.Entry) string {
			return "It is on hold: no further step, no disposal. To let it go on: " + present.Unhold.Command(after)
		},
	}
}

func unholdAct() act {
	return act{
		Action: present.Unhold, short: "let a folder on hold go on",
		long: `Lets a folder on hold go on where it stopped. That may be one that a person held, or
one that was held by the configuration: because its files are those of another invoice while
its metadata is not (same_content: hold), because it has the invoice number of
another one (same_number: hold), because its date can hardly be right
(strange_dates: hold), or because a file of it looks cut off (looks_cut_off: hold, the
default). Then it is sent as it is now, and counts as looked at. That a file looked cut
off stays in the entry. It needs --reason: the same word may accept what was held.`,
		example: `  vaultd unhold "Müller 4711" --reason "the supplier's corrected invoice came separately"
  vaultd unhold "Müller 4711" --reason "both are right: an invoice and its copy for the branch"`,
		done: func(_, after ledger.Entry) string {
			step, _, due := ledger.Due(after)
			if !due {
				return "It is not on hold any more; nothing else is to be done."
			}
			return "It is not on hold any more. Next: " + present.ExplainStep(after, step) + "."
		},
	}
}

func (a *app) actCommands() []*cobra.Command {
	var cs []*cobra.Command
	for _, one := range []act{closeAct(), releaseAct(), holdAct(), unholdAct()} { // retry does more than commit an event
		cs = append(cs, a.actCommand(one))
	}
	return append(cs, a.retryCommand(), a.resumeCommand())
}

func (a *app) actCommand(one act) *cobra.Command {
	use := one.Name + " X"
	if one.NeedsReason {
		use += " --reason TEXT"
	}
	c := &cobra.Command{
		Use: use, Short: one.short, Long: one.long, Example: one.example, Args: expectArgs(xMeans), DisableFlagsInUseLine: true,
	}
	reason := reasonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		check := checkReason
		if one.NeedsReason {
			check = requireReason
		}
		if err := check(c, *reason); err != nil {
			return err
		}
		return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.runDecision(ctx, v, one, args[0], *reason) })
	}
	return c
}

func reasonFlag(c *cobra.Command) *string {
	return c.Flags().String("reason", "", "the `reason`, in words for whoever asks later")
}

const maxReason = 2000 // characters

// requireReason is checkReason for a decision that needs one.
func requireReason(c *cobra.Command, reason string) error {
	if strings.TrimSpace(reason) == "" && !c.Flags().Changed("reason") {
		return usageError{fmt.Errorf("%s needs --reason: it is journaled who decided, and the reason is shown to whoever asks later", c.Name())}
	}
	return checkReason(c, reason)
}

// checkReason refuses a reason that tells a later reader nothing. None at all is allowed.
func checkReason(c *cobra.Command, reason string) error {
	n := len([]rune(reason))
	switch blank := strings.TrimSpace(reason) == ""; {
	case blank && c.Flags().Changed("reason"):
		return usageError{errors.New("--reason is empty; say why, in words for whoever asks later")}
	case n > maxReason:
		return usageError{fmt.Errorf("--reason has %d characters; at most %d are kept", n, maxReason)}
	}
	return nil
}

// runDecision lets a person act on the entry that x names.
func (a *app) runDecision(ctx context.Context, v view, one act, x, reason string) error {
	before, err := a.findOne(ctx, v, x)
	if err != nil {
		return err
	}
	if err := one.Check(before); err != nil {
		return refuseAction(before, one.Action, err)
	}
	after, err := a.actOnEntry(ctx, v, one, before, operator.Person{UID: a.uid, Reason: strings.TrimSpace(reason)})
	if errors.Is(err, ledger.ErrIllegal) { // the entry changed since it was read
		if now, ok, readErr := v.ledger.Entry(before.Key); readErr == nil && ok {
			return refuseAction(now, one.Action, err)
		}
	}
	if err != nil {
		return err
	}
	return a.tellAct(v, actDone{one.Name, after, one.done(before, after), ""})
}

// actOnEntry commits what a person decided; a release asks the archive before.
func (a *app) actOnEntry(ctx context.Context, v view, one act, e ledger.Entry, p operator.Person) (ledger.Entry, error) {
	if !one.asksArchive {
		h, err := a.operatorActions(v)
		if err != nil {
			return e, err
		}
		return h.Act(ctx, e, p, one.Event)
	}
	if a.inside != nil {
		return a.inside.Actions().Release(ctx, e, p)
	}
	dc, err := a.daemonConfig(v.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return e, err
	}
	return daemon.NewActions(dc, v.ledger).Release(ctx, e, p)
}

// operatorActions returns the operator's actions: those of the daemon when inside it, else new ones on this process's ledger.
func (a *app) operatorActions(v view) (*operator.Actions, error) {
	if a.inside != nil {
		return a.inside.Actions(), nil
	}
	now, err := daemon.Clock()
	if err != nil {
		return nil, err
	}
	dc := daemon.Config{StateDir: v.cfg.StateDir, Now: now, Location: v.cfg.Location, Log: slog.New(slog.DiscardHandler), SpoolMinFree: v.cfg.Spool.MinFree}
	for _, d := range v.cfg.Drops {
		dc.Drops = append(dc.Drops, wireDrop(v.cfg, d))
	}
	return daemon.NewActions(dc, v.ledger), nil
}

// actDone is the outcome of a person's decision.
type actDone struct {
	act        string
	entry      ledger.Entry // after the decision
	words      string
	supersedes string // the key of the entry that this one repeats
}

// actJSON is the object that the acts print with --json: the keys of a list's row, and more.
type actJSON struct {
	present.ListRow
	Act        string  `json:"act"`
	UID        uint32  `json:"uid"` // who acted
	Hold       bool    `json:"hold"`
	Resolved   bool    `json:"resolved"`
	InDoubt    bool    `json:"inDoubt"`
	Double     bool    `json:"possiblyDouble"`
	Supersedes *string `json:"supersedes"`
	Text       string  `json:"text"`
}

func (a *app) tellAct(v view, d actDone) error {
	e := d.entry
	more, err := present.ReadDetails(v.ledger, e, v.Location)
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(a.stdout, actJSON{present.NewListRow(v.Clock, e, more), d.act, a.uid, e.Hold, e.Resolved, e.InDoubt, e.PossibleDouble, present.TextOrNil(d.supersedes), d.words})
	}
	fmt.Fprintf(a.stdout, "%s (%s)  %s\n", sanitize.Text(e.Folder), sanitize.Text(e.Drop), present.StateText(e))
	fmt.Fprintf(a.stdout, "  %s\n  Key %s, by %s\n", d.words, e.Key, present.UserName(a.uid))
	if v.state == nil && hasStep(e) {
		fmt.Fprintln(a.stdout, "  vaultd is not running: it goes on with the next run")
	}
	return nil
}

func hasStep(e ledger.Entry) bool {
	_, _, due := ledger.Due(e)
	return due
}

func (a *app) retryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "retry X",
		Short: "take a rejected folder again that was given back",
		Long: `Takes the folder of a rejected entry from _rejected, where it was given back, as a new
entry that repeats the old one. The old one is resolved by that. The folder is looked
at and packed from the beginning: correct first what _REASON.txt in it says.

A clerk does the same by moving the folder back into the drop folder. To see
beforehand whether it would be taken: vaultd validate.`,
		Example: `  vaultd retry "Huber 88"
  vaultd retry "_rejected/Huber 88 (2)"
  vaultd validate "/srv/invoices/acme-in/_rejected/Huber 88" && vaultd retry "Huber 88"`,
		Args: expectArgs(xMeans),
	}
	reason := reasonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkReason(c, *reason); err != nil {
			return err
		}
		return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.retryEntry(ctx, v, args[0], *reason) })
	}
	return c
}

func (a *app) retryEntry(ctx context.Context, v view, x, reason string) error {
	old, err := a.findReturned(ctx, v, x)
	if err != nil {
		return err
	}
	h, err := a.operatorActions(v)
	if err != nil {
		return err
	}
	next, err := h.Retry(ctx, old, operator.Person{UID: a.uid, Reason: strings.TrimSpace(reason)})
	var claim *drop.ClaimError
	switch {
	case errors.As(err, &claim):
		return fail(claimCode(err), err, fmt.Sprintf("nothing was changed. It was given back as %s in drop %s; if it lies elsewhere now, move it into the drop folder itself, which resolves this entry too", sanitize.Text(old.Dest), sanitize.Text(old.Drop)))
	case err != nil:
		return err
	}
	return a.tellAct(v, actDone{"retry", next, "Taken again as a new entry; the old one, " + old.Key.String() + ", is resolved.", old.Key.String()})
}

func claimCode(err error) int {
	code, _ := exitCodeOfLocal(err)
	return code
}

// findReturned finds the rejected entry that x names. When several folders of that name were rejected, it takes the one that is not
// resolved yet, if there is only one.
func (a *app) findReturned(ctx context.Context, v view, x string) (ledger.Entry, error) {
	es, err := a.findByName(ctx, v, x)
	if err != nil {
		return ledger.Entry{}, err
	}
	var waiting []ledger.Entry
	for _, e := range es {
		if present.Retry.Check(e) == nil {
			waiting = append(waiting, e)
		}
	}
	if len(waiting) == 1 {
		return waiting[0], nil
	}
	e, err := a.findOne(ctx, v, x)
	if err != nil {
		return e, err
	}
	if err := present.Retry.Check(e); err != nil {
		return e, refuseAction(e, present.Retry, err)
	}
	return e, nil
}

// returnedFolderPath returns the path of a returned folder on this machine; empty when the drop is not configured.
func returnedFolderPath(c config.Config, e ledger.Entry) string {
	for _, d := range c.Drops {
		if d.Name == e.Drop && e.Dest != "" {
			return path.Join(d.Path, e.Dest)
		}
	}
	return ""
}

// refuseAction says why an action is not allowed on e, and what can be done instead.
func refuseAction(e ledger.Entry, one present.Action, err error) error {
	return fail(exitFailed, fmt.Errorf("%s %q: %s", one.Name, e.Folder, one.ExplainRefusal(e, err)), "see vaultd why "+e.Key.String())
}
