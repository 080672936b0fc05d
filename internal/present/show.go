package present

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// Text tells everything in words. No upload address is in it: an entry forgets them, and they do not print.
func (d Dossier) Text(c Clock) []byte {
	e, p, words := d.Entry, &Page{}, WordsOf(d.Entry.Route)
	fmt.Fprintf(p, "%s\n", sanitize.Text(e.Folder))
	p.AddLine("State", "%s", StateText(e))
	p.AddText(explainState(e))
	for _, f := range ExplainFlags(e) {
		p.AddLine("Note", "%s", f)
	}
	for _, w := range d.Details.Remarks {
		p.AddLine("Look", "%s", w.Text)
	}
	if e.Cause != (ledger.Cause{}) {
		p.AddLine("Why", "%s", sanitize.Text(e.Cause.Code))
		p.AddText(CauseText(e))
	}
	p.addOptional("Next", d.describeNext(c))
	p.AddLine("Folder", "%s", d.describePlace(c))
	p.addOptional("Looked at", d.describeLook(c))
	p.AddLine("Folder of", "%s", UserName(e.Owner))
	p.addOptional("Files also of", DescribeFileOwners(d.Document.FileOwners))
	p.AddLine(words.drop, "%s, %s", sanitize.Text(e.Drop), sanitize.Text(cmp.Or(string(e.Vault), string(e.Route))))
	p.AddLine("Key", "%s", e.Key)
	if !e.ID.IsZero() {
		p.AddLine(words.Identity, "%s%s", e.ID, generationText(e))
	}
	p.addOptional("bumId", sanitize.Text(string(RemoteNumber(e))))
	p.addOptional("Delivered", DescribeMeans(e))
	p.addOptional("Check", DescribeValidation(e))
	p.addOptional("Check's file", sanitize.Text(string(e.ValidationFile)))
	p.addOptional("Recipient", DescribeRecipient(e))
	p.addOptional("Early payment", sanitize.Text(e.Asks))
	d.addRelatives(p, c)
	d.addTimes(p, c)
	d.addContent(p)
	d.addRegistrations(p, c)
	d.addHistory(p, c)
	return p.Bytes()
}

func generationText(e ledger.Entry) string {
	s := " (" + WordsOf(e.Route).identitySeed + ")"
	if e.IDFromSidecar {
		s = " (given by the sidecar)"
	}
	if e.Generation > 0 {
		s = fmt.Sprintf(" (generation %d of %s)", e.Generation, e.FirstID)
	}
	return s
}

// describeNext says what vaultd will do, and from when on.
func (d Dossier) describeNext(c Clock) string {
	step, at, due := ledger.Due(d.Entry)
	if !due {
		return ""
	}
	words := ExplainStep(d.Entry, step)
	if !d.Entry.WaitsFor.IsZero() {
		words += ", once entry " + d.Entry.WaitsFor.String() + " has ended"
	}
	if at.After(c.Now) {
		words += ", not before " + c.Exact(at)
	}
	if n := d.Entry.Attempt; n > 0 {
		words += fmt.Sprintf(" (postponed %s)", FormatCount(int(n), "time", "times"))
	}
	return words
}

func (d Dossier) addRelatives(p *Page, c Clock) {
	if d.Details.Original != nil {
		p.addOriginal(c, *d.Details.Original)
	}
	if d.ReceivedAs != "" {
		p.AddLine("Came in", "over the business network, as document %s (vaultd arrivals show %s)", d.ReceivedAs, d.ReceivedAs)
	}
	p.addSentCopy(d.SentCopy)
	for _, r := range []struct {
		title string
		key   archive.Key
	}{{"Same files", d.Entry.SameContent}, {"Same number", d.Entry.SameNumber}, {"Repeats", d.Entry.Supersedes}} {
		if !r.key.IsZero() {
			p.AddLine(r.title, "entry %s", r.key)
		}
	}
}

// addOriginal names the entry that a duplicate repeats.
func (p *Page) addOriginal(c Clock, f Original) {
	if f.Folder == "" {
		p.AddLine("Duplicate of", "entry %s, which this ledger does not know", f.Key)
		return
	}
	p.AddLine("Duplicate of", `"%s" (drop %s)`, sanitize.Text(f.Folder), sanitize.Text(f.Drop))
	var archived, delivered *string
	if f.ArchivedAt != nil {
		archived = TextOrNil(c.Exact(*f.ArchivedAt))
	}
	if f.DeliveredAt != nil {
		delivered = TextOrNil(c.Exact(*f.DeliveredAt))
	}
	for _, part := range []struct {
		title string
		value *string
	}{{"archived", archived}, {"delivered", delivered}, {"invoice", f.DocumentID}, {"bumId", f.BumID}, {"folder", TextOrNil(f.Place())}, {"entry", &f.Key}} {
		if part.value != nil {
			fmt.Fprintf(p, "  %-11s %s\n", part.title, sanitize.Text(*part.value))
		}
	}
}

func (d Dossier) addTimes(p *Page, c Clock) {
	p.AddHeading("TIMES")
	uploaded := "  uploaded"
	if d.Entry.State == ledger.Delivered {
		uploaded = "  delivered"
	}
	for _, t := range []struct {
		title string
		at    time.Time
	}{
		{"  taken", d.Entry.SeenAt}, {"  registered", d.Entry.RegisteredAt}, {uploaded, d.Entry.UploadedAt},
		{"  archived", d.Entry.ArchivedAt}, {"  removal", d.Entry.DisposeAt},
	} {
		if !t.at.IsZero() {
			p.AddLine(t.title, "%s", c.Exact(t.at))
		}
	}
}

func (d Dossier) addContent(p *Page) {
	if !d.Entry.Package.IsZero() {
		p.AddHeading(strings.ToUpper(WordsOf(d.Entry.Route).Package))
		fmt.Fprintf(p, "  %s (%s), SHA-256 %s\n", FormatBytes(d.Entry.Package.Size), FormatSize(d.Entry.Package.Size), d.Entry.Package.SHA256)
	}
	switch {
	case !d.HasDocument:
		return
	case d.Document.IsOnlyAsRead():
		p.AddHeading("METADATA " + strings.ToUpper(AsReadMark(d.Entry)) + " (as written in the sidecar)")
		for _, f := range AsReadFields(d.Document.AsRead) {
			fmt.Fprintf(p, "  %-18s %s\n", f.Name, sanitize.Text(f.Value))
		}
		return
	}
	p.AddHeading(fmt.Sprintf("FILES (%d)", len(d.Document.Files)))
	for _, f := range d.Document.Files {
		fmt.Fprintf(p, "  %s  %s, SHA-256 %s\n", sanitize.Text(f.Path), FormatBytes(f.Size), f.SHA256)
	}
	for _, f := range d.Document.ControlFiles {
		fmt.Fprintf(p, "  %s  %s, SHA-256 %s, %s\n", sanitize.Text(f.Path), FormatBytes(f.Size), f.SHA256, WordsOf(d.Entry.Route).leftOut)
	}
	if len(d.Document.Junk) > 0 {
		fmt.Fprintf(p, "  ignored: %s\n", sanitize.Text(strings.Join(d.Document.Junk, ", ")))
	}
	for _, remark := range d.Document.Remarks {
		fmt.Fprintf(p, "  remark: %s\n", sanitize.Text(remark))
	}
	fields := MetadataFields(d.Metadata)
	if len(d.Addresses)+len(fields) == 0 {
		p.AddHeading(WordsOf(d.Entry.Route).metadata)
	}
	p.addFields("SENT TO", 24, d.Addresses)
	p.addFields("METADATA", 18, fields)
}

// addFields adds what fields say, under a title; none: nothing.
func (p *Page) addFields(title string, width int, fields []Field) {
	if len(fields) > 0 {
		p.AddHeading(title)
	}
	for _, f := range fields {
		fmt.Fprintf(p, "  %-*s %s\n", width, f.Name, sanitize.Text(f.Value))
	}
}

func (d Dossier) addRegistrations(p *Page, c Clock) {
	e := d.Entry
	if e.Posts == 0 {
		return
	}
	p.AddHeading(fmt.Sprintf(WordsOf(e.Route).posts, e.Posts, e.Answers))
	for i, r := range e.Registrations {
		fmt.Fprintf(p, "  %s  %s", sanitize.Text(string(r.Ticket.Remote)), WordsOf(e.Route).explainFate(r.Fate))
		if i == len(e.Registrations)-1 {
			p.WriteString("; current")
		}
		if r.UploadIntents > 0 {
			fmt.Fprintf(p, "; sent %s", FormatCount(int(r.UploadIntents), "time", "times"))
		}
		if r.EqualAnswers > 0 {
			fmt.Fprintf(p, "; the archive last said %q at %s", r.LastStatus, c.Exact(r.LastAnswer))
		}
		p.WriteString("\n")
	}
	if ids := DescribeRequests(e.Requests()); ids != "" {
		fmt.Fprintf(p, "  request ids, for support: %s\n", ids)
	}
}

func (d Dossier) addHistory(p *Page, c Clock) {
	says := strings.TrimSuffix(WordsOf(d.Entry.Route).Says, " %s")
	p.AddHeading(fmt.Sprintf("HISTORY (%d)", len(d.History)))
	for _, l := range d.History {
		at := l.At
		if t, err := time.Parse(time.RFC3339, l.At); err == nil {
			at = c.Exact(t)
		}
		fmt.Fprintf(p, "  %s  %-19s %s", at, sanitize.Text(l.Event), sanitize.Text(l.State+"/"+l.Source))
		for _, more := range []struct{ name, value string }{
			{"bumId", l.Remote}, {says, l.Status}, {"cause", l.Cause}, {"entry", l.Other}, {"flags", l.Flags},
		} {
			if more.value != "" {
				fmt.Fprintf(p, ", %s %s", more.name, sanitize.Text(more.value))
			}
		}
		if l.UID != nil {
			role := "by"
			if IsOwnerOnly(l) {
				role = "a folder of"
			}
			fmt.Fprintf(p, ", %s %s", role, UserName(uint32(*l.UID)))
		}
		p.WriteString("\n")
		if n, ok := d.Notes[l.Rev]; ok {
			fmt.Fprintf(p, "    reason: %s\n", sanitize.JoinLines(n.Text))
		}
	}
}

// DescribeFileOwners names the owners of files that are not the folder's owner.
func DescribeFileOwners(uids []uint32) string {
	var names []string
	for _, uid := range uids {
		names = append(names, UserName(uid))
	}
	if len(names) == ledger.MaxFileOwners {
		names = append(names, "perhaps others")
	}
	return strings.Join(names, ", ")
}

// IsOwnerOnly reports whether the user in a line owns the folder, and did not act:
// who dropped it or changed its files is not known.
func IsOwnerOnly(l ledger.Line) bool {
	return l.Event == (ledger.ClaimedFolder{}).JournalName() || l.Event == (ledger.Recovered{}).JournalName()
}

// ShowJSON is the object of "show --json": the keys of a list's row, and more.
type ShowJSON struct {
	ListRow
	Meaning       string           `json:"meaning"`
	Cause         *Cause           `json:"cause"`
	Flags         []string         `json:"flags"`
	Dest          *string          `json:"dest"`
	Owner         uint32           `json:"owner"`
	FileOwners    []uint32         `json:"fileOwners"` // of its files, but for the folder's owner; at most ledger.MaxFileOwners
	First         *string          `json:"duplicateOf"`
	SameContent   *string          `json:"sameContent"`
	SameNumber    *string          `json:"sameNumber"`
	Supersedes    *string          `json:"supersedes"`
	SentCopy      *SentCopy        `json:"sentCopy"`
	ReceivedAs    *string          `json:"receivedAs"`   // its number at the business network, over which it came in
	Check         *string          `json:"check"`        // what became of the file with what the business network's check found
	CheckFile     *string          `json:"checkFile"`    // its number at the network
	CheckedAt     *time.Time       `json:"checkedAt"`    // when the kept folder was last looked at; null: not since it was put there, or it is not kept
	MissingSince  *time.Time       `json:"missingSince"` // of the returned folder of an unresolved rejection; null: it is there, as far as is known
	DisposeAt     *time.Time       `json:"disposeAt"`
	Next          *string          `json:"next"`
	NotBefore     *time.Time       `json:"notBefore"`
	Posts         uint16           `json:"posts"`
	Answers       uint16           `json:"answers"`
	Registrations []Registration   `json:"registrations"`
	Requests      []ledger.Request `json:"requests"` // the last calls about it that succeeded, by which support finds them
	Files         []File           `json:"files"`
	Metadata      json.RawMessage  `json:"metadata"`
	Record        *string          `json:"record"` // the archive's success as it came
	History       []ledger.Line    `json:"history"`
	Reasons       []Decision       `json:"reasons"` // that people gave for their acts
}

// Cause is why an entry is in its state.
type Cause struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Registration is one registration of an entry with the archive.
type Registration struct {
	BumID         string     `json:"bumId"`
	Fate          string     `json:"fate"`
	UploadIntents uint16     `json:"uploadIntents"`
	Closed        *time.Time `json:"closedAt"`
	Word          *string    `json:"archiveSays"`
	Last          *time.Time `json:"saidAt"`
}

// File is one file of a document.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// JSON makes the object of "show --json".
func (d Dossier) JSON(c Clock) ShowJSON {
	e := d.Entry
	s := ShowJSON{
		ListRow: NewListRow(c, e, d.Details), Meaning: explainState(e), Flags: ExplainFlags(e), Dest: TextOrNil(e.Dest), Owner: e.Owner, FileOwners: append([]uint32{}, d.Document.FileOwners...),
		First: keyOrNil(e.DuplicateOf), SameContent: keyOrNil(e.SameContent), SameNumber: keyOrNil(e.SameNumber), Supersedes: keyOrNil(e.Supersedes), SentCopy: d.SentCopy, ReceivedAs: TextOrNil(string(d.ReceivedAs)),
		Check: TextOrNil(DescribeValidation(e)), CheckFile: TextOrNil(string(e.ValidationFile)),
		Registrations: []Registration{}, Requests: append([]ledger.Request{}, e.Requests()...), Files: []File{}, Reasons: d.decisions(),
		CheckedAt: TimeOrNil(d.CheckedAt()), MissingSince: TimeOrNil(d.MissingSince()), DisposeAt: TimeOrNil(e.DisposeAt), Posts: e.Posts, Answers: e.Answers, Record: TextOrNil(string(e.SuccessRecord)), History: d.History,
	}
	if e.Cause != (ledger.Cause{}) {
		s.Cause = &Cause{e.Cause.Code, CauseText(e)}
	}
	if step, at, due := ledger.Due(e); due {
		s.Next, s.NotBefore = TextOrNil(step.String()), TimeOrNil(at)
	}
	for _, r := range e.Registrations {
		one := Registration{BumID: string(r.Ticket.Remote), Fate: WordsOf(e.Route).explainFate(r.Fate), UploadIntents: r.UploadIntents, Closed: TimeOrNil(r.ClosedAt)}
		if r.EqualAnswers > 0 {
			one.Word, one.Last = TextOrNil(r.LastStatus.String()), TimeOrNil(r.LastAnswer)
		}
		s.Registrations = append(s.Registrations, one)
	}
	for _, f := range d.Document.Files {
		s.Files = append(s.Files, File{f.Path, f.Size, f.SHA256.String()})
	}
	if len(d.Document.Metadata) > 0 {
		s.Metadata = d.Document.Metadata
	}
	return s
}
