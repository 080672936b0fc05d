package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

// page writes what "show" tells: titled lines and indented ones below them.
type page struct{ bytes.Buffer }

func (p *page) line(title, format string, a ...any) {
	fmt.Fprintf(p, "%-13s %s\n", title, fmt.Sprintf(format, a...))
}

func (p *page) some(title, text string) {
	if text != "" {
		p.line(title, "%s", text)
	}
}

// below writes a text of any origin, indented.
func (p *page) below(text string) {
	for _, line := range sanitize.Lines(text) {
		fmt.Fprintf(p, "  %s\n", line)
	}
}

func (p *page) head(title string) { fmt.Fprintf(p, "\n%s\n", title) }

// text tells everything in words. No upload address is in it: an entry forgets them, and they do not print.
func (d dossier) text(c clock) []byte {
	e, p := d.entry, &page{}
	fmt.Fprintf(p, "%s\n", sanitize.Text(e.Folder))
	p.line("State", "%s", stateWord(e))
	p.below(meaning(e))
	for _, f := range flagWords(e) {
		p.line("Note", "%s", f)
	}
	for _, w := range d.details.warnings {
		p.line("Look", "%s", w.Text)
	}
	if e.Cause != (ledger.Cause{}) {
		p.line("Why", "%s", sanitize.Text(e.Cause.Code))
		p.below(e.Cause.Text)
	}
	p.some("Next", d.next(c))
	p.line("Folder", "%s", whereabouts(e))
	p.line("Dropped by", "%s", userName(e.Owner))
	p.line("Drop, vault", "%s, %s", sanitize.Text(e.Drop), sanitize.Text(string(e.Vault)))
	p.line("Key", "%s", e.Key)
	if !e.ID.IsZero() {
		p.line("clientUUID", "%s%s", e.ID, generationText(e))
	}
	p.some("bumId", sanitize.Text(string(remoteOf(e))))
	d.relatives(p, c)
	d.times(p, c)
	d.content(p)
	d.registrations(p, c)
	d.journal(p, c)
	return p.Bytes()
}

func generationText(e ledger.Entry) string {
	s := " (derived from files and metadata)"
	if e.IDFromSidecar {
		s = " (given by the sidecar)"
	}
	if e.Generation > 0 {
		s = fmt.Sprintf(" (generation %d of %s)", e.Generation, e.FirstID)
	}
	return s
}

// next says what vaultd will do, and from when on.
func (d dossier) next(c clock) string {
	step, at, due := ledger.Due(d.entry)
	if !due {
		return ""
	}
	words := stepWords[step]
	if !d.entry.WaitsFor.IsZero() {
		words += ", once entry " + d.entry.WaitsFor.String() + " has ended"
	}
	if at.After(c.now) {
		words += ", not before " + c.exact(at)
	}
	if n := d.entry.Attempt; n > 0 {
		words += fmt.Sprintf(" (postponed %s)", many(int(n), "time", "times"))
	}
	return words
}

func (d dossier) relatives(p *page, c clock) {
	if d.details.first != nil {
		tellFirst(p, c, *d.details.first)
	}
	for _, r := range []struct {
		title string
		key   archive.Key
	}{{"Same files", d.entry.SameContent}, {"Same number", d.entry.SameNumber}, {"Repeats", d.entry.Supersedes}} {
		if !r.key.IsZero() {
			p.line(r.title, "entry %s", r.key)
		}
	}
}

// tellFirst names the archived entry that a duplicate repeats.
func tellFirst(p *page, c clock, f report.First) {
	if f.Folder == "" {
		p.line("Duplicate of", "entry %s, which this ledger does not know", f.Key)
		return
	}
	p.line("Duplicate of", `"%s" (drop %s)`, sanitize.Text(f.Folder), sanitize.Text(f.Drop))
	var archived *string
	if f.ArchivedAt != nil {
		archived = known(c.exact(*f.ArchivedAt))
	}
	for _, part := range []struct {
		title string
		value *string
	}{{"archived", archived}, {"invoice", f.DocumentID}, {"bumId", f.BumID}, {"folder", known(f.Place())}, {"entry", &f.Key}} {
		if part.value != nil {
			fmt.Fprintf(p, "  %-11s %s\n", part.title, sanitize.Text(*part.value))
		}
	}
}

func (d dossier) times(p *page, c clock) {
	p.head("TIMES")
	for _, t := range []struct {
		title string
		at    time.Time
	}{
		{"  taken", d.entry.SeenAt}, {"  registered", d.entry.RegisteredAt}, {"  uploaded", d.entry.UploadedAt},
		{"  archived", d.entry.ArchivedAt}, {"  removal", d.entry.DisposeAt},
	} {
		if !t.at.IsZero() {
			p.line(t.title, "%s", c.exact(t.at))
		}
	}
}

func (d dossier) content(p *page) {
	if !d.entry.Package.IsZero() {
		p.head("ZIP")
		fmt.Fprintf(p, "  %s (%s), SHA-256 %s\n", bytesText(d.entry.Package.Size), sizeText(d.entry.Package.Size), d.entry.Package.SHA256)
	}
	switch {
	case !d.has:
		return
	case d.doc.IsOnlyAsRead():
		p.head("METADATA " + strings.ToUpper(asReadWords(d.entry)) + " (as written in the sidecar)")
		for _, f := range asReadFields(d.doc.AsRead) {
			fmt.Fprintf(p, "  %-18s %s\n", f.name, sanitize.Text(f.value))
		}
		return
	}
	p.head(fmt.Sprintf("FILES (%d)", len(d.doc.Files)))
	for _, f := range d.doc.Files {
		fmt.Fprintf(p, "  %s  %s, SHA-256 %s\n", sanitize.Text(f.Path), bytesText(f.Size), f.SHA256)
	}
	for _, f := range d.doc.ControlFiles {
		fmt.Fprintf(p, "  %s  %s, SHA-256 %s, not in the ZIP\n", sanitize.Text(f.Path), bytesText(f.Size), f.SHA256)
	}
	if len(d.doc.Junk) > 0 {
		fmt.Fprintf(p, "  ignored: %s\n", sanitize.Text(strings.Join(d.doc.Junk, ", ")))
	}
	p.head("METADATA")
	for _, f := range metadataFields(d.meta) {
		fmt.Fprintf(p, "  %-18s %s\n", f.name, sanitize.Text(f.value))
	}
}

type metadataField struct{ name, value string }

// metadataFields gives the fields that are set, by the names of the service.
func metadataFields(m archive.Document) []metadataField {
	all := []metadataField{
		{"documentType", m.Type},
		{"documentId", m.Number},
		{"documentDate", m.Date},
		{"senderName", m.SenderName},
		{"senderIds", strings.Join(m.SenderIDs, ", ")},
		{"recipientName", m.RecipientName},
		{"recipientIds", strings.Join(m.RecipientIDs, ", ")},
		{"amount", strings.TrimSpace(string(m.Amount) + " " + m.Currency)},
		{"buyerReferenceId", m.BuyerReferenceID},
		{"buyerReferenceType", m.BuyerReferenceType},
		{"tradingPartner", m.TradingPartner},
		{"flowDirection", m.FlowDirection},
	}
	for _, q := range m.Parameters {
		all = append(all, metadataField{q.Key, q.Value})
	}
	var set []metadataField
	for _, f := range all {
		if f.value != "" {
			set = append(set, metadataField{sanitize.Text(f.name), f.value})
		}
	}
	return set
}

func (d dossier) registrations(p *page, c clock) {
	e := d.entry
	if e.Posts == 0 {
		return
	}
	p.head(fmt.Sprintf("REGISTRATIONS (%d asked for, %d answered)", e.Posts, e.Answers))
	for i, r := range e.Registrations {
		fmt.Fprintf(p, "  %s  %s", sanitize.Text(string(r.Ticket.Remote)), fateMeans(r.Fate))
		if i == len(e.Registrations)-1 {
			p.WriteString("; current")
		}
		if r.UploadIntents > 0 {
			fmt.Fprintf(p, "; sent %s", many(int(r.UploadIntents), "time", "times"))
		}
		if r.EqualAnswers > 0 {
			fmt.Fprintf(p, "; the archive last said %q at %s", r.LastStatus, c.exact(r.LastAnswer))
		}
		p.WriteString("\n")
	}
}

func (d dossier) journal(p *page, c clock) {
	p.head(fmt.Sprintf("HISTORY (%d)", len(d.history)))
	for _, l := range d.history {
		at := l.At
		if t, err := time.Parse(time.RFC3339, l.At); err == nil {
			at = c.exact(t)
		}
		fmt.Fprintf(p, "  %s  %-19s %s", at, sanitize.Text(l.Event), sanitize.Text(l.State+"/"+l.Source))
		for _, more := range []struct{ name, value string }{
			{"bumId", l.Remote}, {"archive says", l.Status}, {"cause", l.Cause}, {"entry", l.Other}, {"flags", l.Flags},
		} {
			if more.value != "" {
				fmt.Fprintf(p, ", %s %s", more.name, sanitize.Text(more.value))
			}
		}
		if l.UID != nil {
			fmt.Fprintf(p, ", by %s", userName(uint32(*l.UID)))
		}
		p.WriteString("\n")
		if n, ok := d.notes[l.Rev]; ok {
			fmt.Fprintf(p, "    reason: %s\n", sanitize.JoinLines(n.Text))
		}
	}
}

// showJSON is the object of "show --json": the keys of a list's row, and more.
type showJSON struct {
	listRow
	Meaning       string             `json:"meaning"`
	Cause         *showCause         `json:"cause"`
	Flags         []string           `json:"flags"`
	Dest          *string            `json:"dest"`
	Owner         uint32             `json:"owner"`
	First         *string            `json:"duplicateOf"`
	SameContent   *string            `json:"sameContent"`
	SameNumber    *string            `json:"sameNumber"`
	Supersedes    *string            `json:"supersedes"`
	DisposeAt     *time.Time         `json:"disposeAt"`
	Next          *string            `json:"next"`
	NotBefore     *time.Time         `json:"notBefore"`
	Posts         uint16             `json:"posts"`
	Answers       uint16             `json:"answers"`
	Registrations []showRegistration `json:"registrations"`
	Files         []showFile         `json:"files"`
	Metadata      json.RawMessage    `json:"metadata"`
	Record        *string            `json:"record"` // the archive's success as it came
	History       []ledger.Line      `json:"history"`
	Reasons       []showReason       `json:"reasons"` // that people gave for their acts
}

type showCause struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

type showReason struct {
	Rev  uint32     `json:"rev"` // as in history
	At   *time.Time `json:"at"`
	Act  string     `json:"act"`
	UID  *int64     `json:"uid"`
	Text string     `json:"text"`
}

type showRegistration struct {
	BumID  string     `json:"bumId"`
	Fate   string     `json:"fate"`
	Sends  uint16     `json:"sends"`
	Closed *time.Time `json:"closedAt"`
	Word   *string    `json:"archiveSays"`
	Last   *time.Time `json:"saidAt"`
}

type showFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func (d dossier) json(c clock) showJSON {
	e := d.entry
	s := showJSON{
		listRow: newListRow(c, e, d.details), Meaning: meaning(e), Flags: flagWords(e), Dest: known(e.Dest), Owner: e.Owner,
		First: keyOrNil(e.DuplicateOf), SameContent: keyOrNil(e.SameContent), SameNumber: keyOrNil(e.SameNumber), Supersedes: keyOrNil(e.Supersedes),
		Registrations: []showRegistration{}, Files: []showFile{}, Reasons: d.reasons(),
		DisposeAt: inUTC(e.DisposeAt), Posts: e.Posts, Answers: e.Answers, Record: known(string(e.SuccessRecord)), History: d.history,
	}
	if e.Cause != (ledger.Cause{}) {
		s.Cause = &showCause{e.Cause.Code, e.Cause.Text}
	}
	if step, at, due := ledger.Due(e); due {
		s.Next, s.NotBefore = known(step.String()), inUTC(at)
	}
	for _, r := range e.Registrations {
		one := showRegistration{BumID: string(r.Ticket.Remote), Fate: fateMeans(r.Fate), Sends: r.UploadIntents, Closed: inUTC(r.ClosedAt)}
		if r.EqualAnswers > 0 {
			one.Word, one.Last = known(r.LastStatus.String()), inUTC(r.LastAnswer)
		}
		s.Registrations = append(s.Registrations, one)
	}
	for _, f := range d.doc.Files {
		s.Files = append(s.Files, showFile{f.Path, f.Size, f.SHA256.String()})
	}
	if len(d.doc.Metadata) > 0 {
		s.Metadata = d.doc.Metadata
	}
	return s
}

// reasons are what people gave for their acts, oldest first.
func (d dossier) reasons() []showReason {
	all := []showReason{}
	for _, l := range d.history {
		if n, ok := d.notes[l.Rev]; ok {
			one := showReason{Rev: l.Rev, Act: l.Event, UID: l.UID, Text: n.Text}
			if t, err := time.Parse(time.RFC3339, l.At); err == nil {
				one.At = inUTC(t)
			}
			all = append(all, one)
		}
	}
	return all
}

func keyOrNil(k archive.Key) *string {
	if k.IsZero() {
		return nil
	}
	return known(k.String())
}
