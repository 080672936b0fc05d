package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/statedir"
)

// arrivalWords are what "vaultd arrivals" does with one received document.
var arrivalWords = []string{"show", "retry", "take", "close"}

// fewestDigits of a digest say which file a person means.
const fewestDigits = 8

func (a *app) arrivalsCommand() *cobra.Command {
	limit, reason, digest := listed, "", ""
	c := &cobra.Command{
		Use:   "arrivals [show|retry|take|close] [ID]",
		Short: "the documents that came in over the business network, and what became of each",
		Long: `Lists the documents that came in over the business network, the newest first, with their
state: announced, fetching, held, acknowledged, given-up. Sender and number are shown once
the document is here. One that has to wait says why, and one that needs a person says what
to do.

show ID     one document with its files, its times, the folder that it became, and what
            people said of it to the network (vaultd accept, vaultd reject)
retry ID    try now what failed; a pause after a fault of the network ends too
take ID     take the file as it is that looks wrong, without waiting any longer. It needs --reason,
            and --sha256 with the digest that "show" names, so that you take what you looked at
close ID    give a document up that is not in the drop folder: nothing more of it is fetched.
            It needs --reason, which is journaled with who decided. Its notification stays
            at the network, and is not taken for a new document

ID is the number of the document at the network, or the key of the arrival. With --json each
document is a line, all of them.`,
		Example: `  vaultd arrivals
  vaultd arrivals --json | jq -r 'select(.state != "acknowledged") | .id'
  vaultd arrivals show 46aa4caf-b373-11ed-bbfc-cfd535abf178
  vaultd arrivals close 46aa4caf-b373-11ed-bbfc-cfd535abf178 --reason "the supplier sent it by mail"`,
		Args: func(c *cobra.Command, args []string) error { return checkArrivalArgs(c, args, limit, reason, digest) },
		RunE: func(c *cobra.Command, args []string) error {
			if a.json && !c.Flags().Changed("limit") {
				limit = 0
			}
			return a.withLedger(c, args, func(ctx context.Context, v view) error {
				switch {
				case len(args) == 0:
					return a.listArrivals(v, limit)
				case args[0] == "show":
					return a.showArrival(v, args[1])
				}
				return a.decideArrival(ctx, v, args[0], args[1], strings.TrimSpace(reason), digest)
			})
		},
	}
	c.ValidArgsFunction = completeFirstOf(arrivalWords)
	c.Flags().StringVar(&reason, "reason", "", "why, in words for whoever asks later")
	c.Flags().StringVar(&digest, "sha256", "", "of take: the digest of the file that is meant, or its first 8 digits or more")
	c.Flags().IntVar(&limit, "limit", listed, "at most so many; 0: all (the default with --json)")
	return c
}

// checkArrivalArgs refuses what is no word that is known, and what lacks an ID or a reason.
func checkArrivalArgs(c *cobra.Command, args []string, limit int, reason, digest string) error {
	switch {
	case limit < 0:
		return usageError{errors.New("--limit is negative; 0 lists all")}
	case len(args) == 0:
		return nil
	case !slices.Contains(arrivalWords, args[0]) || len(args) > 2:
		return usageError{fmt.Errorf("%q is nothing that arrivals does; known are %s", strings.Join(args, " "), strings.Join(arrivalWords, ", "))}
	case len(args) == 1:
		return usageError{fmt.Errorf("arrivals %s needs the ID of a document, as vaultd arrivals shows it", args[0])}
	case args[0] == "take" && len(digest) < fewestDigits:
		return usageError{fmt.Errorf("arrivals take needs --sha256 with at least %d digits: look at the file first, which vaultd arrivals show %s names with its digest", fewestDigits, sanitize.ShellWord(args[1]))}
	case args[0] == "close", args[0] == "take":
		return requireReason(c, reason)
	}
	return checkReason(c, reason)
}

// findReceived finds a received document by its number at the network or by the key of its arrival.
func (v view) findReceived(id string) (arrival.Arrival, error) {
	x, known, err := v.ledger.FindArrival(arrival.Received, archive.ExtractID(id))
	if key, parseErr := archive.ParseKey(id); err == nil && !known && parseErr == nil {
		x, known, err = v.ledger.Arrival(key)
	}
	if err == nil && (!known || x.Kind != arrival.Received) {
		err = fail(exitFailed, fmt.Errorf("no received document has the ID %q", id), "see vaultd arrivals")
	}
	return x, err
}

// arrivalJSON is one object of "arrivals --json". What is not known is null.
type arrivalJSON struct {
	ID             string            `json:"id"` // the number of the document at the network
	Key            string            `json:"key"`
	DocumentType   string            `json:"documentType"`
	State          string            `json:"state"`
	Sender         *string           `json:"sender"`
	DocumentID     *string           `json:"documentId"`
	AnnouncedAt    *time.Time        `json:"announcedAt"`
	HeldAt         *time.Time        `json:"heldAt"`
	InDropAt       *time.Time        `json:"inDropAt"`
	ConfirmedAt    *time.Time        `json:"confirmedAt"`
	AcknowledgedAt *time.Time        `json:"acknowledgedAt"`
	Attempts       uint16            `json:"attempts"` // of what is due, that failed
	NextTry        *time.Time        `json:"nextTry"`
	Cause          string            `json:"cause"`    // the code of the last failure, or of the end; may be empty
	Waits          string            `json:"waits"`    // what is due, or why it has to wait; may be empty
	Need           string            `json:"need"`     // what an operator has to do; may be empty
	Requests       []ledger.Request  `json:"requests"` // the last calls about it that succeeded, by which support finds them
	Said           []saidJSON        `json:"said"`     // by people to the network, in that order
	Files          []arrivalFileJSON `json:"files"`
	Entry          *arrivalEntryJSON `json:"entry"` // the folder that it became
}

type arrivalFileJSON struct {
	Name   string `json:"name"`   // its number at the network; #document is the document itself
	Stored string `json:"stored"` // its name in state_dir/received/KEY; empty: it is not held
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`

	Told     *string `json:"told"`     // its name, as the network tells it; null: it tells none
	Type     *string `json:"type"`     // its content type, as the network tells it
	Encoding *string `json:"encoding"` // in which it came; what came lies beside it

	Doubt *doubtJSON `json:"doubt"` // what came for it and looks wrong; may be null
}

// doubtJSON is what came for a file and looks wrong. If the file is held, it
// was taken all the same.
type doubtJSON struct {
	Why       string    `json:"why"`
	Stored    string    `json:"stored"` // its name in state_dir/received/KEY
	SHA256    string    `json:"sha256"`
	Times     uint16    `json:"times"`   // it came so often
	Seconds   int64     `json:"seconds"` // at least so long it was from the first time to the last
	LastAt    time.Time `json:"lastAt"`
	Overruled bool      `json:"overruled"` // a person takes it as it is

	path string // where a person finds it
}

// text says it in a sentence.
func (d doubtJSON) text(isHeld, isGivenUp bool) string {
	how := fmt.Sprintf("%s; it came %s so", d.Why, present.FormatCount(int(d.Times), "time", "times"))
	switch {
	case d.Overruled && isHeld:
		return how + ", and was taken as it is, because a person decided so"
	case isHeld:
		return how + ", and was taken as it is"
	case isGivenUp:
		return how + ", and was given up"
	case d.Overruled:
		return how + "; a person takes it as it is, which is done next"
	}
	return fmt.Sprintf("%s; it lies in %s, SHA-256 %s", how, d.path, d.SHA256)
}

type arrivalEntryJSON struct {
	Key    string `json:"key"`
	Drop   string `json:"drop"`
	Folder string `json:"folder"`
	State  string `json:"state"`
}

func (v view) newArrivalJSON(x arrival.Arrival) (arrivalJSON, error) {
	j := arrivalJSON{ID: string(x.Item), Key: x.Key.String(), DocumentType: x.Type, State: x.State.String(), AnnouncedAt: timeJSON(x.AnnouncedAt), HeldAt: timeJSON(x.HeldAt), InDropAt: timeJSON(x.HandedOnAt),
		ConfirmedAt: timeJSON(x.ConfirmedAt), AcknowledgedAt: timeJSON(x.AcknowledgedAt), Attempts: x.Attempt, NextTry: timeJSON(x.NotBefore), Cause: x.Cause.Code, Waits: v.describeWait(x), Need: v.describeReceivedNeed(x), Requests: requestsOf(x), Files: []arrivalFileJSON{}}
	for _, f := range x.Files {
		file := arrivalFileJSON{Name: f.Name, Stored: f.Stored, Size: f.Size,
			Told: present.TextOrNil(f.Told.Name), Type: present.TextOrNil(f.Told.Type), Encoding: present.TextOrNil(f.Told.Encoding)}
		if f.IsHeld() {
			file.SHA256 = f.SHA256.String()
		}
		if d := f.Doubt; d.IsSet() {
			file.Doubt = &doubtJSON{d.Why, d.Stored, d.SHA256.String(), d.Times, int64(d.For / time.Second), d.Last, d.Overruled, filepath.Join(v.cfg.StateDir, statedir.ReceivedFolder, x.Key.String(), d.Stored)}
		}
		j.Files = append(j.Files, file)
	}
	e, isTaken, err := v.findReceivedEntry(x)
	if err != nil {
		return j, err
	}
	if isTaken {
		j.Entry = &arrivalEntryJSON{e.Key.String(), e.Drop, e.Folder, e.State.String()}
	}
	sender, number, err := v.describeReceived(x, e, isTaken)
	if err != nil {
		return j, err
	}
	j.Sender, j.DocumentID = present.TextOrNil(sender), present.TextOrNil(number)
	j.Said, err = v.listSaid(x)
	return j, err
}

// describeWait says what is due of a received document, or why that has to wait; empty: nothing is due.
func (v view) describeWait(x arrival.Arrival) string {
	step, _, at := arrival.Due(x, v.receiveRules())
	switch {
	case step == arrival.NoStep:
		return ""
	case x.Cause.Code == "":
		return "next: " + step.String()
	case at.After(v.Now):
		return fmt.Sprintf("%s failed: %s; tried again %s", step, sanitize.Text(x.Cause.Text), v.Brief(at))
	}
	return fmt.Sprintf("%s failed: %s", step, sanitize.Text(x.Cause.Text))
}

func (a *app) listArrivals(v view, limit int) error {
	t := present.NewTable(a.stdout, "DOCUMENT", "CAME", "TYPE", "STATE", "FROM", "NUMBER", "")
	n := 0
	err := v.ledger.ArrivalsNewestFirst(func(x arrival.Arrival) error {
		switch {
		case x.Kind != arrival.Received:
			return nil
		case limit > 0 && n == limit:
			return errEnough
		}
		n++
		j, err := v.newArrivalJSON(x)
		if err != nil {
			return err
		}
		if a.json {
			return writeJSON(a.stdout, j)
		}
		t.AppendRow(present.TableRow(sanitize.Text(j.ID), v.Brief(x.AnnouncedAt), sanitize.Text(j.DocumentType), j.State, textOf(j.Sender, 30), textOf(j.DocumentID, 30), describeOutcome(j)))
		return nil
	})
	isCut := errors.Is(err, errEnough)
	switch {
	case err != nil && !isCut:
		return err
	case a.json:
		return nil
	case n == 0:
		fmt.Fprintln(a.stdout, "No document has come in over the business network yet.")
		return nil
	}
	t.Render()
	if isCut {
		fmt.Fprintf(a.stderr, "the newest %d; --limit 0 lists all\n", limit)
	}
	return nil
}

func textOf(text *string, longest int) string {
	if text == nil {
		return ""
	}
	return sanitize.Name(*text, longest)
}

// describeOutcome says in a row what became of a received document, or why it waits.
func describeOutcome(j arrivalJSON) string {
	switch {
	case j.Need != "":
		return "NEEDS YOU: " + sanitize.Name(j.Need, 120)
	case j.Waits != "" && j.Entry == nil:
		return sanitize.Name(j.Waits, 90)
	case j.Entry != nil:
		return sanitize.Name(j.Entry.Folder, 60) + ": " + j.Entry.State
	case j.InDropAt != nil:
		return "in the drop folder"
	}
	return ""
}

func (a *app) showArrival(v view, id string) error {
	x, err := v.findReceived(id)
	if err != nil {
		return err
	}
	j, err := v.newArrivalJSON(x)
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(a.stdout, j)
	}
	fmt.Fprintf(a.stdout, "received document %s, %s: %s\n", sanitize.Text(j.ID), sanitize.Text(j.DocumentType), j.State)
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(a.stdout, "  %-15s %s\n", what, text)
		}
	}
	line("from", textOf(j.Sender, 200))
	line("number", textOf(j.DocumentID, 200))
	for _, at := range []struct {
		what string
		when time.Time
	}{{"announced", x.AnnouncedAt}, {"held", x.HeldAt}, {"in the drop", x.HandedOnAt}, {"confirmed", x.ConfirmedAt}, {"acknowledged", x.AcknowledgedAt}} {
		if !at.when.IsZero() {
			line(at.what, v.Exact(at.when))
		}
	}
	line("request ids", present.DescribeRequests(j.Requests))
	line("waits", j.Waits)
	line("TO DO", j.Need)
	for _, f := range j.Files {
		if f.Doubt != nil {
			line("looks wrong", fmt.Sprintf("%s: %s", sanitize.Text(f.Name), sanitize.Text(f.Doubt.text(f.Stored != "", x.State == arrival.GivenUp))))
		}
	}
	for _, s := range j.Said {
		line("said", v.describeSaid(s))
	}
	if j.Entry != nil {
		line("became", fmt.Sprintf("%s in drop %s: %s (vaultd show %s)", sanitize.Text(j.Entry.Folder), sanitize.Text(j.Entry.Drop), j.Entry.State, j.Entry.Key))
	}
	t := present.NewTable(a.stdout, "FILE", "HERE", "SIZE", "SHA-256")
	for _, f := range j.Files {
		stored, size := "not held", ""
		if f.Stored != "" {
			stored, size = sanitize.Text(f.Stored), present.FormatSize(f.Size)
		}
		t.AppendRow(present.TableRow(sanitize.Text(f.Name), stored, size, f.SHA256))
	}
	if len(j.Files) > 0 {
		t.Render()
	}
	return nil
}
