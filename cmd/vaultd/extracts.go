package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/arrivals"
	"vaultd/internal/custody"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

// extractWords are what "vaultd extracts" does with one extract, or with all where it may be left out.
var extractWords = []string{"show", "verify", "retry", "close"}

func (a *app) extractsCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "extracts [show|verify|retry|close] [ID]",
		Short: "the extracts of the accounts-payable system: which are held, and which need a person",
		Long: `Lists the extracts that the service has offered, the newest first, with their state:
announced, fetching, held, acknowledged, given-up. What needs a person says what to do.

show ID     one extract with its files, their downloads and their digests
verify      read every held file again and compare it with its digest; with an ID of one
            extract alone. Exit code 4: something differs
retry ID    allow more downloads of an extract that used up max_downloads. The service
            allows 50 in all, so look at the proxy first
close ID    give an extract up that is not held: nothing more of it is fetched. It needs
            --reason, which is journaled with who decided

With --json each extract is a line.`,
		Example: `  vaultd extracts
  vaultd extracts verify
  vaultd extracts close 4711 --reason "the provider made it anew as 4712"`,
		Args: func(c *cobra.Command, args []string) error { return checkExtractArgs(c, args, reason) },
		RunE: func(c *cobra.Command, args []string) error {
			return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.runExtracts(ctx, v, args, strings.TrimSpace(reason)) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, in words for whoever asks later")
	return c
}

// checkExtractArgs refuses what is no word that is known, and what lacks an ID or a reason.
func checkExtractArgs(c *cobra.Command, args []string, reason string) error {
	switch {
	case len(args) == 0:
		return nil
	case !slices.Contains(extractWords, args[0]) || len(args) > 2:
		return usageError{fmt.Errorf("%q is nothing that extracts does; known are %s", strings.Join(args, " "), strings.Join(extractWords, ", "))}
	case len(args) == 1 && args[0] != "verify":
		return usageError{fmt.Errorf("extracts %s needs the ID of an extract, as vaultd extracts shows it", args[0])}
	case args[0] == "close":
		return requireReason(c, reason)
	}
	return nil
}

func (a *app) runExtracts(ctx context.Context, v view, args []string, reason string) error {
	if len(args) == 0 {
		return a.listExtracts(v)
	}
	var one []arrival.Arrival
	if len(args) == 2 {
		found, ok, err := v.ledger.FindArrival(arrival.Extract, archive.ExtractID(args[1]))
		if err != nil {
			return err
		}
		if !ok {
			return fail(exitFailed, fmt.Errorf("no extract has the ID %q", args[1]), "see vaultd extracts")
		}
		one = append(one, found)
	}
	switch args[0] {
	case "show":
		return a.showExtract(v, one[0])
	case "verify":
		return a.verifyExtracts(ctx, v, one)
	case "retry":
		return a.actOnExtract(ctx, v, one[0], "", func(by ledger.Operator) arrival.Event { return arrival.Allowed{By: by} })
	default:
		return a.actOnExtract(ctx, v, one[0], reason, func(by ledger.Operator) arrival.Event {
			return arrival.Abandoned{By: &by, Cause: ledger.Cause{Code: "closed", Text: "a person gave it up"}}
		})
	}
}

// extractJSON is one object of "extracts --json".
type extractJSON struct {
	ID             string            `json:"id"`
	Type           string            `json:"type"`
	Word           string            `json:"processingStatus"` // in the service's word when it was announced; empty: unknown
	Name           string            `json:"name"`
	State          arrival.State     `json:"state"`
	Start          *time.Time        `json:"start"`
	End            *time.Time        `json:"end"`
	Made           *time.Time        `json:"made"`
	AnnouncedAt    *time.Time        `json:"announcedAt"`
	HeldAt         *time.Time        `json:"heldAt"`
	HandedOnAt     *time.Time        `json:"handedOnAt"` // when its files were in the drop of extracts.to_drop
	AcknowledgedAt *time.Time        `json:"acknowledgedAt"`
	Requests       []ledger.Request  `json:"requests"`       // the last calls about it that succeeded, by which support finds them
	Manifest       string            `json:"manifestSHA256"` // empty: it is not held
	Files          []extractFileJSON `json:"files"`
	Cause          string            `json:"cause"` // of the last failure, or of the end
	Need           string            `json:"need"`  // what a person has to do; may be empty
}

type extractFileJSON struct {
	Name      string `json:"name"`
	Table     string `json:"table"`
	Downloads uint16 `json:"downloads"`
	Stored    string `json:"stored"` // its name in the custody; empty: it is not held
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
}

func newExtractJSON(v view, x arrival.Arrival) extractJSON {
	j := extractJSON{ID: string(x.Item), Type: x.Type, Word: x.Word, Name: x.Name, State: x.State, Start: timeJSON(x.Start), End: timeJSON(x.End), Made: timeJSON(x.Made),
		AnnouncedAt: timeJSON(x.AnnouncedAt), HeldAt: timeJSON(x.HeldAt), HandedOnAt: timeJSON(x.HandedOnAt), AcknowledgedAt: timeJSON(x.AcknowledgedAt), Requests: requestsOf(x), Files: []extractFileJSON{}, Cause: x.Cause.Text, Need: describeExtractNeed(v, x)}
	if !x.Manifest.IsZero() {
		j.Manifest = x.Manifest.String()
	}
	for _, f := range x.Files {
		file := extractFileJSON{Name: f.Name, Table: f.Table, Downloads: f.Downloads, Stored: f.Stored, Size: f.Size}
		if f.IsHeld() {
			file.SHA256 = f.SHA256.String()
		}
		j.Files = append(j.Files, file)
	}
	return j
}

// requestsOf returns the last calls about an arrival that succeeded.
func requestsOf(x arrival.Arrival) []ledger.Request {
	return append([]ledger.Request{}, ledger.KnownRequests(ledger.Request{Call: "fetch", ID: x.FetchRequest}, ledger.Request{Call: "notice", ID: x.TellRequest})...)
}

func timeJSON(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// soonOver is how long before the service removes an extract a person is told.
const soonOver = 30 * 24 * time.Hour

// sumWarning is how many downloads of all files of an extract that is not held are told to a person. The service does not say whether its
// limit is of a file or of the extract.
const sumWarning = arrival.ServiceLimit * 4 / 5

// nameExtract names an extract as people know it: by what it is and by its day.
func (v view) nameExtract(x arrival.Arrival) string {
	name := strings.ToUpper(x.Type[:min(1, len(x.Type))]) + x.Type[min(1, len(x.Type)):]
	if x.Type == "" {
		name = "It"
	}
	if day := cmp.Or(x.End, x.Made); !day.IsZero() {
		name += " of " + day.In(v.Location).Format("2 Jan 2006")
	}
	return sanitize.Text(name)
}

// describeExtractNeed says what a person has to do about an extract; empty: nothing.
func describeExtractNeed(v view, x arrival.Arrival) string {
	if !x.State.IsOpen() {
		return describeHeldNeed(v, x)
	}
	rules := arrival.Rules{Acknowledge: v.cfg.Extracts.Acknowledge, MaxDownloads: uint16(v.cfg.Extracts.MaxDownloads)}
	if step, file, _ := arrival.Due(x, rules); step == arrival.Person {
		most := int(x.MostDownloads())
		return fmt.Sprintf("%s was downloaded %s without success; left: %d. Look at the proxy, then: vaultd extracts retry %s",
			sanitize.Text(file), present.FormatCount(most, "time", "times"), max(arrival.ServiceLimit-most, 0), x.Item)
	}
	end := x.EndsAt()
	switch left := end.Sub(v.Now); {
	case !end.IsZero() && left <= 0:
		return v.nameExtract(x) + " is not held, and its year is over. See why it was not fetched, then: vaultd extracts close " + string(x.Item)
	case !end.IsZero() && left < soonOver:
		return strings.TrimSpace(fmt.Sprintf("%s is not held and ends in %s: the service removes it then. %s", v.nameExtract(x), present.FormatCount(int(left/(24*time.Hour)), "day", "days"), x.Cause.Text))
	case x.Downloads() >= sumWarning && x.Downloads() > uint64(len(x.Files)):
		return fmt.Sprintf("Its files were downloaded %s in all, some of them more than once. Should the service's limit of %d be of the whole extract, it is near: look at the proxy.",
			present.FormatCount(int(x.Downloads()), "time", "times"), arrival.ServiceLimit)
	case x.Gone:
		return "The service's list leaves it out, and it is not held. Ask who else takes extracts."
	case x.Cause.Code != "" && v.Now.Sub(cmp.Or(x.LostAt, x.AnnouncedAt)) >= longWait:
		return strings.TrimSpace(fmt.Sprintf("%s is not held after more than a day. %s See vaultd extracts show %s, and ask the provider.", v.nameExtract(x), sanitize.Name(x.Cause.Text, 300), x.Item))
	}
	return ""
}

// describeHeldNeed says what a person has to do about an extract that is not to
// be fetched; empty: nothing.
func describeHeldNeed(v view, x arrival.Arrival) string {
	switch {
	case x.State == arrival.GivenUp && x.Cause.Code == arrivals.CauseCustodyLost:
		return sanitize.Text(x.Cause.Text)
	case x.State == arrival.Held && v.cfg.Extracts.Acknowledge && v.cfg.Extracts.ToDrop == "" && x.Cause.Code != "" && v.Now.Sub(x.HeldAt) >= longWait:
		return fmt.Sprintf("%s is held, and the service does not take its acknowledgement. It is tried again: %s", v.nameExtract(x), sanitize.Name(x.Cause.Text, 300))
	}
	return describeHandOnNeed(v, x)
}

// describeHandOnNeed says why the files of an extract that is held are not in the drop folder that archives them; empty: they are, or nobody asks for it.
func describeHandOnNeed(v view, x arrival.Arrival) string {
	if v.cfg.Extracts.ToDrop == "" || x.State != arrival.Held || !x.HandedOnAt.IsZero() || x.Cause.Code == "" {
		return ""
	}
	return fmt.Sprintf("It is held, and its files do not get into the drop %s, which archives them. It is tried again: %s", v.cfg.Extracts.ToDrop, sanitize.Text(x.Cause.Text))
}

// findExtractNeeds says of each extract that needs a person what to do.
func (v view) findExtractNeeds() (needs []string, err error) {
	states := []arrival.State{arrival.Announced, arrival.Fetching, arrival.GivenUp}
	if v.cfg.Extracts.ToDrop != "" || v.cfg.Extracts.Acknowledge {
		states = append(states, arrival.Held)
	}
	err = v.eachExtract(func(x arrival.Arrival) error {
		if need := describeExtractNeed(v, x); need != "" {
			needs = append(needs, string(x.Item)+": "+need)
		}
		return nil
	}, states...)
	return needs, err
}

// eachExtract calls fn with every extract in one of the states. A document of the business network is none.
func (v view) eachExtract(fn func(arrival.Arrival) error, states ...arrival.State) error {
	return v.ledger.Arrivals(func(x arrival.Arrival) error {
		if x.Kind != arrival.Extract {
			return nil
		}
		return fn(x)
	}, states...)
}

func (a *app) listExtracts(v view) error {
	var all []arrival.Arrival
	if err := v.eachExtract(func(x arrival.Arrival) error { all = append(all, x); return nil }, arrival.States()...); err != nil {
		return err
	}
	slices.SortFunc(all, func(x, y arrival.Arrival) int { return strings.Compare(y.Key.String(), x.Key.String()) })
	t := present.NewTable(a.stdout, "EXTRACT", "TYPE", "UP TO", "STATE", "FILES", "")
	for _, x := range all {
		if a.json {
			if err := writeJSON(a.stdout, newExtractJSON(v, x)); err != nil {
				return err
			}
			continue
		}
		upTo := ""
		if !x.End.IsZero() {
			upTo = v.Brief(x.End)
		}
		t.AppendRow(present.TableRow(sanitize.Text(string(x.Item)), sanitize.Text(x.Type), upTo, x.State.String(), countHeldFiles(x), describeExtractNeed(v, x)))
	}
	if a.json {
		return nil
	}
	if len(all) == 0 {
		fmt.Fprintln(a.stdout, "No extract was announced yet.")
		return nil
	}
	t.Render()
	return nil
}

// countHeldFiles says how many files of an extract are held, of how many.
func countHeldFiles(x arrival.Arrival) string {
	held := 0
	for _, f := range x.Files {
		if f.IsHeld() {
			held++
		}
	}
	return fmt.Sprintf("%d of %d", held, max(len(x.Files), x.Count))
}

func (a *app) showExtract(v view, x arrival.Arrival) error {
	j := newExtractJSON(v, x)
	if a.json {
		return writeJSON(a.stdout, j)
	}
	fmt.Fprintf(a.stdout, "extract %s, %s: %s\n", sanitize.Text(j.ID), sanitize.Text(j.Type), j.State)
	if j.Word != "" {
		fmt.Fprintf(a.stdout, "  %-13s %s, when it was announced\n", "service says", sanitize.Text(j.Word))
	}
	for _, at := range []struct {
		what string
		when time.Time
	}{{"from", x.Start}, {"up to", x.End}, {"made", x.Made}, {"announced", x.AnnouncedAt}, {"held", x.HeldAt}, {"in the drop", x.HandedOnAt}, {"acknowledged", x.AcknowledgedAt}} {
		if !at.when.IsZero() {
			fmt.Fprintf(a.stdout, "  %-13s %s\n", at.what, v.Exact(at.when))
		}
	}
	if ids := present.DescribeRequests(j.Requests); ids != "" {
		fmt.Fprintf(a.stdout, "  %-13s %s\n", "request ids", ids)
	}
	if j.Cause != "" {
		fmt.Fprintf(a.stdout, "  %-13s %s\n", "last", sanitize.Text(j.Cause))
	}
	if j.Need != "" {
		fmt.Fprintf(a.stdout, "  %-13s %s\n", "TO DO", j.Need)
	}
	t := present.NewTable(a.stdout, "FILE", "TABLE", "DOWNLOADS", "SIZE", "SHA-256")
	for _, f := range j.Files {
		size := "not held"
		if f.Stored != "" {
			size = present.FormatSize(f.Size)
		}
		t.AppendRow(present.TableRow(sanitize.Text(f.Name), sanitize.Text(f.Table), fmt.Sprint(f.Downloads), size, f.SHA256))
	}
	t.Render()
	return nil
}

// actOnExtract commits what a person decided about an extract.
func (a *app) actOnExtract(ctx context.Context, v view, x arrival.Arrival, reason string, decide func(ledger.Operator) arrival.Event) error {
	now, err := daemon.Clock()
	if err != nil {
		return err
	}
	by, note := operator.Person{UID: a.uid, Reason: reason}.Sign()
	// One commit: after a crash the decision is in the journal with who made it, or it was not made.
	after, err := v.ledger.ApplyArrival(ctx, arrival.Change{Key: x.Key, Rev: x.Rev, Events: []arrival.Event{decide(by)}, Note: note, At: now()})
	if errors.Is(err, ledger.ErrIllegal) {
		return fail(exitFailed, fmt.Errorf("extract %s is %s: nothing is left to decide", x.Item, x.State), "see vaultd extracts show "+string(x.Item))
	}
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(a.stdout, newExtractJSON(v, after))
	}
	fmt.Fprintf(a.stdout, "extract %s is %s. It is looked at again with the next list at the latest.\n", after.Item, after.State)
	return nil
}

// verifyExtracts reads what is held of one extract, or of all, and compares it with the manifest, and that with the ledger.
func (a *app) verifyExtracts(ctx context.Context, v view, some []arrival.Arrival) error {
	if some == nil {
		if err := v.eachExtract(func(x arrival.Arrival) error { some = append(some, x); return nil }, arrival.Held, arrival.Acknowledged); err != nil {
			return err
		}
	}
	some = slices.DeleteFunc(some, func(x arrival.Arrival) bool { return x.Manifest.IsZero() })
	if len(some) == 0 {
		fmt.Fprintln(a.stdout, "No extract is held.")
		return nil
	}
	c, err := v.openCustody()
	if err != nil {
		return err
	}
	defer c.Close() // still unwritten
	files, differ := 0, 0
	for _, x := range some {
		err := verifyExtract(ctx, c, x)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if files += len(x.Files); err != nil {
			differ++
			fmt.Fprintf(a.stdout, "extract %s DIFFERS: %v\n", x.Item, err)
		}
	}
	fmt.Fprintf(a.stdout, "%s with %s read, %s\n", present.FormatCount(len(some), "extract", "extracts"), present.FormatCount(files, "file", "files"),
		present.FormatCount(differ, "differs", "differ"))
	if differ > 0 {
		return failSilently(exitDifferences)
	}
	return nil
}

// verifyExtract compares one extract on disk with its manifest, and its manifest with the ledger.
func verifyExtract(ctx context.Context, c *custody.Custody, x arrival.Arrival) error {
	m, err := c.Find(x.Item)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("its manifest is missing; restore it from a copy of the folder")
	}
	if err != nil {
		return err
	}
	for _, f := range x.Files {
		is := func(h custody.HeldFile) bool { return h.Stored == f.Stored && h.SHA256 == f.SHA256 && h.Size == f.Size }
		if !slices.ContainsFunc(m.Files, is) {
			return fmt.Errorf("the manifest does not have %s as the ledger does; restore it from a copy of the folder", f.Stored)
		}
	}
	return c.Verify(ctx, m)
}
