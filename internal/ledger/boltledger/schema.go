package boltledger

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The tables of the wire form. Once a schema is released, a number is never given
// to another field, and a new field comes with a new schema number, so that an older
// program refuses the ledger instead of dropping what it does not know.

var nodeForm = &message[ledger.Node]{"Node", []field[ledger.Node]{
	number(1, "dev", func(n *ledger.Node) *uint64 { return &n.Dev }),
	number(2, "ino", func(n *ledger.Node) *uint64 { return &n.Ino }),
}}

var packageForm = &message[archive.Package]{"Package", []field[archive.Package]{
	text(1, "path", func(p *archive.Package) *string { return &p.Path }),
	signed(2, "size", func(p *archive.Package) *int64 { return &p.Size }),
	fixed(3, "sha256", func(p *archive.Package) []byte { return p.SHA256[:] }),
	fixed(4, "md5", func(p *archive.Package) []byte { return p.MD5[:] }),
}}

var causeForm = &message[ledger.Cause]{"Cause", []field[ledger.Cause]{
	text(1, "code", func(c *ledger.Cause) *string { return &c.Code }),
	text(2, "text", func(c *ledger.Cause) *string { return &c.Text }),
}}

var headerForm = &message[archive.Header]{"Header", []field[archive.Header]{
	text(1, "name", func(h *archive.Header) *string { return &h.Name }),
	text(2, "value", func(h *archive.Header) *string { return &h.Value }),
}}

var instantForm = &message[archive.Instant]{"Instant", []field[archive.Instant]{
	instant(1, "wall", func(i *archive.Instant) *time.Time { return &i.Wall }),
	signed(2, "boot", func(i *archive.Instant) *time.Duration { return &i.Boot }),
	text(3, "boot_id", func(i *archive.Instant) *string { return &i.BootID }),
	signed(4, "slept", func(i *archive.Instant) *time.Duration { return &i.Slept }),
}}

var ticketForm = &message[archive.Ticket]{"Ticket", []field[archive.Ticket]{
	text(1, "remote", func(t *archive.Ticket) *archive.RemoteID { return &t.Remote }),
	text(2, "url", func(t *archive.Ticket) *archive.PresignedURL { return &t.URL }),
	list(3, "headers", headerForm, func(t *archive.Ticket) *[]archive.Header { return &t.Headers }),
	part(4, "sent", instantForm, func(t *archive.Ticket) *archive.Instant { return &t.Sent }),
	instant(5, "date", func(t *archive.Ticket) *time.Time { return &t.Date }),
	instant(6, "signed_at", func(t *archive.Ticket) *time.Time { return &t.SignedAt }),
	signed(7, "validity", func(t *archive.Ticket) *time.Duration { return &t.Validity }),
	fixed(8, "object", func(t *archive.Ticket) []byte { return t.Object[:] }),
}}

var registrationForm = &message[ledger.Registration]{"Registration", []field[ledger.Registration]{
	part(1, "ticket", ticketForm, func(r *ledger.Registration) *archive.Ticket { return &r.Ticket }),
	number(2, "generation", func(r *ledger.Registration) *uint8 { return &r.Generation }),
	number(3, "sends", func(r *ledger.Registration) *uint16 { return &r.UploadIntents }),
	number(4, "clear", func(r *ledger.Registration) *uint16 { return &r.WithoutEffect }),
	number(5, "fate", func(r *ledger.Registration) *ledger.Fate { return &r.Fate }),
	instant(6, "closed", func(r *ledger.Registration) *time.Time { return &r.ClosedAt }),
	number(7, "word", func(r *ledger.Registration) *archive.ServiceStatus { return &r.LastStatus }),
	number(8, "equal", func(r *ledger.Registration) *uint8 { return &r.EqualAnswers }),
	instant(9, "last", func(r *ledger.Registration) *time.Time { return &r.LastAnswer }),
	fixed(10, "sent", func(r *ledger.Registration) []byte { return r.Sent[:] }),
	instant(11, "succeeded_at", func(r *ledger.Registration) *time.Time { return &r.SucceededAt }),
}}

var foldedForm = &message[ledger.RegistrationsPruned]{"Folded", []field[ledger.RegistrationsPruned]{
	number(1, "unsent", func(f *ledger.RegistrationsPruned) *uint32 { return &f.Unsent }),
	number(2, "lapsed", func(f *ledger.RegistrationsPruned) *uint32 { return &f.Lapsed }),
}}

var entryForm = &message[ledger.Entry]{"Entry", []field[ledger.Entry]{
	fixed(1, "key", func(e *ledger.Entry) []byte { return e.Key[:] }),
	number(2, "rev", func(e *ledger.Entry) *uint32 { return &e.Rev }),
	number(3, "state", func(e *ledger.Entry) *ledger.State { return &e.State }),
	number(4, "source", func(e *ledger.Entry) *ledger.Source { return &e.Source }),
	text(5, "route", func(e *ledger.Entry) *ledger.Route { return &e.Route }),
	text(6, "vault", func(e *ledger.Entry) *archive.VaultID { return &e.Vault }),
	text(7, "drop", func(e *ledger.Entry) *string { return &e.Drop }),
	text(8, "folder", func(e *ledger.Entry) *string { return &e.Folder }),
	number(9, "owner", func(e *ledger.Entry) *uint32 { return &e.Owner }),
	part(10, "node", nodeForm, func(e *ledger.Entry) *ledger.Node { return &e.Node }),
	fixed(11, "look", func(e *ledger.Entry) []byte { return e.Fingerprint[:] }),
	fixed(12, "id", func(e *ledger.Entry) []byte { return e.ID[:] }),
	fixed(13, "base", func(e *ledger.Entry) []byte { return e.FirstID[:] }),
	number(14, "generation", func(e *ledger.Entry) *uint8 { return &e.Generation }),
	flag(15, "chosen", func(e *ledger.Entry) *bool { return &e.IDFromSidecar }),
	fixed(16, "content", func(e *ledger.Entry) []byte { return e.Content[:] }),
	fixed(17, "metadata", func(e *ledger.Entry) []byte { return e.Metadata[:] }),
	part(18, "package", packageForm, func(e *ledger.Entry) *archive.Package { return &e.Package }),
	list(19, "registrations", registrationForm, func(e *ledger.Entry) *[]ledger.Registration { return &e.Registrations }),
	number(20, "posts", func(e *ledger.Entry) *uint16 { return &e.Posts }),
	number(21, "answers", func(e *ledger.Entry) *uint16 { return &e.Answers }),
	number(22, "lost", func(e *ledger.Entry) *uint16 { return &e.LostAnswers }),
	number(23, "failures", func(e *ledger.Entry) *uint8 { return &e.Failures }),
	number(24, "part", func(e *ledger.Entry) *uint16 { return &e.BatchLimit }),
	number(25, "attempt", func(e *ledger.Entry) *uint16 { return &e.Attempt }),
	instant(26, "not_before", func(e *ledger.Entry) *time.Time { return &e.NotBefore }),
	fixed(27, "after", func(e *ledger.Entry) []byte { return e.WaitsFor[:] }),
	part(28, "cause", causeForm, func(e *ledger.Entry) *ledger.Cause { return &e.Cause }),
	flag(29, "hold", func(e *ledger.Entry) *bool { return &e.Hold }),
	flag(30, "in_doubt", func(e *ledger.Entry) *bool { return &e.InDoubt }),
	flag(31, "double", func(e *ledger.Entry) *bool { return &e.PossibleDouble }),
	flag(32, "contradicted", func(e *ledger.Entry) *bool { return &e.Contradicted }),
	flag(33, "resolved", func(e *ledger.Entry) *bool { return &e.Resolved }),
	fixed(34, "first", func(e *ledger.Entry) []byte { return e.DuplicateOf[:] }),
	fixed(35, "same_content", func(e *ledger.Entry) []byte { return e.SameContent[:] }),
	fixed(36, "supersedes", func(e *ledger.Entry) []byte { return e.Supersedes[:] }),
	text(37, "archived", func(e *ledger.Entry) *archive.RemoteID { return &e.ArchivedRemote }),
	raw(38, "record", func(e *ledger.Entry) *[]byte { return &e.SuccessRecord }),
	text(39, "dest", func(e *ledger.Entry) *string { return &e.Dest }),
	instant(40, "seen_at", func(e *ledger.Entry) *time.Time { return &e.SeenAt }),
	instant(41, "registered_at", func(e *ledger.Entry) *time.Time { return &e.RegisteredAt }),
	instant(42, "uploaded_at", func(e *ledger.Entry) *time.Time { return &e.UploadedAt }),
	instant(43, "archived_at", func(e *ledger.Entry) *time.Time { return &e.ArchivedAt }),
	instant(44, "dispose_at", func(e *ledger.Entry) *time.Time { return &e.DisposeAt }),
	flag(45, "suspect", func(e *ledger.Entry) *bool { return &e.NeedsReconcile }),
	part(46, "folded", foldedForm, func(e *ledger.Entry) *ledger.RegistrationsPruned { return &e.Pruned }),
	flag(47, "sworn", func(e *ledger.Entry) *bool { return &e.DuplicateConfirmed }),
	fixed(48, "number", func(e *ledger.Entry) []byte { return e.Number[:] }),
	fixed(49, "same_number", func(e *ledger.Entry) []byte { return e.SameNumber[:] }),
	flag(50, "strange_date", func(e *ledger.Entry) *bool { return &e.StrangeDate }),
	flag(51, "checked", func(e *ledger.Entry) *bool { return &e.Reviewed }),
}}

var fileForm = &message[archive.File]{"File", []field[archive.File]{
	text(1, "path", func(f *archive.File) *string { return &f.Path }),
	signed(2, "size", func(f *archive.File) *int64 { return &f.Size }),
	fixed(3, "sha256", func(f *archive.File) []byte { return f.SHA256[:] }),
}}

var asReadForm = &message[archive.AsRead]{"AsRead", []field[archive.AsRead]{
	text(1, "document_type", func(a *archive.AsRead) *string { return &a.Type }),
	text(2, "document_id", func(a *archive.AsRead) *string { return &a.Number }),
	text(3, "document_date", func(a *archive.AsRead) *string { return &a.Date }),
	text(4, "sender_name", func(a *archive.AsRead) *string { return &a.SenderName }),
	text(5, "sender_ids", func(a *archive.AsRead) *string { return &a.SenderIDs }),
	text(6, "recipient_name", func(a *archive.AsRead) *string { return &a.RecipientName }),
	text(7, "recipient_ids", func(a *archive.AsRead) *string { return &a.RecipientIDs }),
	text(8, "amount", func(a *archive.AsRead) *string { return &a.Amount }),
	text(9, "currency_code", func(a *archive.AsRead) *string { return &a.Currency }),
}}

var documentForm = &message[ledger.Document]{"Document", []field[ledger.Document]{
	fixed(1, "salt", func(d *ledger.Document) []byte { return d.Salt[:] }),
	raw(2, "metadata", func(d *ledger.Document) *[]byte { return &d.Metadata }),
	list(3, "files", fileForm, func(d *ledger.Document) *[]archive.File { return &d.Files }),
	list(4, "others", fileForm, func(d *ledger.Document) *[]archive.File { return &d.ControlFiles }),
	items(5, "junk", "string", func(d *ledger.Document) *[]string { return &d.Junk }),
	part(6, "as_read", asReadForm, func(d *ledger.Document) *archive.AsRead { return &d.AsRead }),
}}

var noteForm = &message[ledger.Note]{"Note", []field[ledger.Note]{
	fixed(1, "salt", func(n *ledger.Note) []byte { return n.Salt[:] }),
	text(2, "text", func(n *ledger.Note) *string { return &n.Text }),
}}

// block holds the journal lines of one commit.
type block struct {
	prev  archive.Digest // hash of everything before
	count uint64
	lines [][]byte
}

// room is how much a block takes at the most.
func (b *block) room() int {
	n := 64
	for _, line := range b.lines {
		n += len(line) + 8
	}
	return n
}

var blockForm = &message[block]{"Block", []field[block]{
	fixed(1, "prev", func(b *block) []byte { return b.prev[:] }),
	number(2, "count", func(b *block) *uint64 { return &b.count }),
	items(3, "lines", "bytes", func(b *block) *[][]byte { return &b.lines }),
}}

var infoForm = &message[ledger.Info]{"Info", []field[ledger.Info]{
	text(1, "id", func(i *ledger.Info) *string { return &i.ID }),
	text(2, "environment", func(i *ledger.Info) *string { return &i.Environment }),
	text(3, "base_url", func(i *ledger.Info) *string { return &i.BaseURL }),
	instant(4, "created", func(i *ledger.Info) *time.Time { return &i.Created }),
	number(5, "epoch", func(i *ledger.Info) *uint64 { return &i.Epoch }),
}}

// secret is what a ledger keeps for itself: the key of the digests that stand for objects at the service's store. It
// is made with the ledger, and a copy of the ledger has it too: else no digest would be found in it.
type secret struct{ key [32]byte }

var secretForm = &message[secret]{"Secret", []field[secret]{
	fixed(1, "key", func(s *secret) []byte { return s.key[:] }),
}}

func newSecret() (s secret) {
	_, _ = rand.Read(s.key[:]) // it never fails
	return s
}

func openSecret(meta *bbolt.Bucket) (secret, error) {
	s, err := secretForm.open(meta.Get(secretKey))
	if err == nil && s == (secret{}) {
		err = errors.New("read Secret: it is empty")
	}
	if err != nil {
		return s, damage("%v", err)
	}
	return s, nil
}

// tally is how many entries stand in one state.
type tally struct {
	state   ledger.State
	entries uint64
}

var tallyForm = &message[tally]{"Tally", []field[tally]{
	number(1, "state", func(t *tally) *ledger.State { return &t.state }),
	number(2, "entries", func(t *tally) *uint64 { return &t.entries }),
}}

// standing is what changes with every commit: where the journal ends, the balance,
// and the zone in which the totals' years are reckoned.
type standing struct {
	head    ledger.Head
	seen    uint64
	tallies []tally
	zone    string
	marks   uint64    // lines that belong to no entry, the first one not counted
	alarmed time.Time // the latest that one of them tells of having lost something
}

var standingForm = &message[standing]{"Standing", []field[standing]{
	number(1, "n", func(s *standing) *uint64 { return &s.head.N }),
	fixed(2, "hash", func(s *standing) []byte { return s.head.Hash[:] }),
	number(3, "seen", func(s *standing) *uint64 { return &s.seen }),
	list(4, "tallies", tallyForm, func(s *standing) *[]tally { return &s.tallies }),
	text(5, "zone", func(s *standing) *string { return &s.zone }),
	number(6, "marks", func(s *standing) *uint64 { return &s.marks }),
	instant(7, "alarmed", func(s *standing) *time.Time { return &s.alarmed }),
}}

var runForm = &message[run]{"Run", []field[run]{
	number(1, "number", func(r *run) *uint64 { return &r.number }),
	number(2, "level", func(r *run) *uint8 { return &r.level }),
	number(3, "pairs", func(r *run) *uint64 { return &r.pairs }),
	number(4, "into", func(r *run) *uint64 { return &r.into }),
	flag(5, "making", func(r *run) *bool { return &r.making }),
	number(6, "done", func(r *run) *uint64 { return &r.done }),
}}

var indexForm = &message[index]{"Runs", []field[index]{
	number(1, "next", func(x *index) *uint64 { return &x.next }),
	list(2, "runs", runForm, func(x *index) *[]run { return &x.runs }),
}}

// openIndex reads which runs there are.
func openIndex(tx *bbolt.Tx) (x index, err error) {
	record := tx.Bucket(metaBucket).Get(runsKey)
	if record == nil {
		return x, nil
	}
	if x, err = indexForm.open(record); err != nil {
		return x, damage("%v", err)
	}
	if !x.sound() {
		return x, damage("its list of runs is none")
	}
	return x, nil
}

var totalForm = &message[ledger.Total]{"Total", []field[ledger.Total]{
	text(1, "vault", func(t *ledger.Total) *archive.VaultID { return &t.Vault }),
	signed(2, "year", func(t *ledger.Total) *int { return &t.Year }),
	number(3, "documents", func(t *ledger.Total) *uint64 { return &t.Documents }),
	number(4, "bytes", func(t *ledger.Total) *uint64 { return &t.Bytes }),
	instant(5, "last", func(t *ledger.Total) *time.Time { return &t.Last }),
	signed(6, "month", func(t *ledger.Total) *int { return &t.Month }),
	number(7, "unsized", func(t *ledger.Total) *uint64 { return &t.Unsized }),
}}

// safeMode is why the ledger is in safe mode, and whether the entries that this is
// about are still to be doubted: whoever opens the ledger goes on with that first.
type safeMode struct {
	ledger.SafeMode
	doubting bool
}

var safeForm = &message[safeMode]{"Safe", []field[safeMode]{
	text(1, "word", func(s *safeMode) *string { return &s.Mark }),
	text(2, "cause", func(s *safeMode) *string { return &s.Cause }),
	instant(3, "since", func(s *safeMode) *time.Time { return &s.Since }),
	instant(4, "from", func(s *safeMode) *time.Time { return &s.KnownUntil }),
	flag(5, "doubting", func(s *safeMode) *bool { return &s.doubting }),
}}

// replaced is the outside head of the ledger in whose place this one was put. It stands
// until the head was written anew, so that a crash between the two is no rollback.
type replaced struct {
	head   ledger.Head
	ledger string
	any    bool // whatever it was: it was missing, or could not be read
}

var replacedForm = &message[replaced]{"Replaced", []field[replaced]{
	number(1, "n", func(r *replaced) *uint64 { return &r.head.N }),
	fixed(2, "hash", func(r *replaced) []byte { return r.head.Hash[:] }),
	text(3, "ledger", func(r *replaced) *string { return &r.ledger }),
	flag(4, "any", func(r *replaced) *bool { return &r.any }),
}}

// replacing returns what is to be remembered of an outside head; nil: there is none.
func replacing(outside *headRecord) (r replaced) {
	if outside == nil {
		return replaced{any: true}
	}
	d, err := archive.ParseDigest(outside.Hash)
	return replaced{head: ledger.Head{N: outside.N, Hash: d}, ledger: outside.Ledger, any: err != nil}
}

// was reports whether outside is the head that was replaced.
func (r *replaced) was(outside *headRecord) bool {
	return r != nil && (r.any || outside != nil && outside.Ledger == r.ledger && outside.agrees(r.head))
}

// sealEntry writes an entry, but for what the rest of it tells (the identity, of the first one
// and the generation), what the spool tells (where the package lies), and what nobody asks for
// once the entry is at rest (the digest that went along with an upload).
func sealEntry(e ledger.Entry, home []byte) []byte {
	if e.ID == identity(e, e.Generation) {
		e.ID = archive.ID{}
	}
	if bytes.Equal(home, doneBucket) {
		e.Package.MD5 = [16]byte{}
	}
	e.Package.Path = ""
	return entryForm.seal(&e)
}

// openEntry reads an entry and refuses numbers that this schema does not know: a
// state is an index into the balance.
func openEntry(record []byte) (ledger.Entry, error) {
	e, err := entryForm.open(record)
	if err == nil && (e.State == ledger.None || e.State > ledger.Quarantined || e.Source > ledger.Gone) {
		err = fmt.Errorf("read Entry: state %d, source %d", e.State, e.Source)
	}
	if e.ID.IsZero() && !e.FirstID.IsZero() {
		e.ID = identity(e, e.Generation)
	}
	return e, err
}
