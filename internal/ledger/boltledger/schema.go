package boltledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
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
	numberField(1, "dev", func(n *ledger.Node) *uint64 { return &n.Dev }),
	numberField(2, "ino", func(n *ledger.Node) *uint64 { return &n.Ino }),
}}

var packageForm = &message[archive.Package]{"Package", []field[archive.Package]{
	textField(1, "path", func(p *archive.Package) *string { return &p.Path }),
	signedField(2, "size", func(p *archive.Package) *int64 { return &p.Size }),
	fixedField(3, "sha256", func(p *archive.Package) []byte { return p.SHA256[:] }),
	fixedField(4, "md5", func(p *archive.Package) []byte { return p.MD5[:] }),
}}

var causeForm = &message[ledger.Cause]{"Cause", []field[ledger.Cause]{
	textField(1, "code", func(c *ledger.Cause) *string { return &c.Code }),
	textField(2, "text", func(c *ledger.Cause) *string { return &c.Text }),
	textField(3, "file", func(c *ledger.Cause) *string { return &c.File }),
}}

var headerForm = &message[archive.Header]{"Header", []field[archive.Header]{
	textField(1, "name", func(h *archive.Header) *string { return &h.Name }),
	textField(2, "value", func(h *archive.Header) *string { return &h.Value }),
}}

var instantForm = &message[archive.Instant]{"Instant", []field[archive.Instant]{
	instantField(1, "wall", func(i *archive.Instant) *time.Time { return &i.Wall }),
	signedField(2, "boot", func(i *archive.Instant) *time.Duration { return &i.Boot }),
	textField(3, "boot_id", func(i *archive.Instant) *string { return &i.BootID }),
	signedField(4, "slept", func(i *archive.Instant) *time.Duration { return &i.Slept }),
}}

var ticketForm = &message[archive.Ticket]{"Ticket", []field[archive.Ticket]{
	textField(1, "remote", func(t *archive.Ticket) *archive.RemoteID { return &t.Remote }),
	textField(2, "url", func(t *archive.Ticket) *archive.PresignedURL { return &t.URL }),
	listField(3, "headers", headerForm, func(t *archive.Ticket) *[]archive.Header { return &t.Headers }),
	partField(4, "sent", instantForm, func(t *archive.Ticket) *archive.Instant { return &t.Sent }),
	instantField(5, "date", func(t *archive.Ticket) *time.Time { return &t.Date }),
	instantField(6, "signed_at", func(t *archive.Ticket) *time.Time { return &t.SignedAt }),
	signedField(7, "validity", func(t *archive.Ticket) *time.Duration { return &t.Validity }),
	fixedField(8, "object", func(t *archive.Ticket) []byte { return t.Object[:] }),
	flagField(9, "without_md5", func(t *archive.Ticket) *bool { return &t.WithoutMD5 }),
	requestField(10, "request", func(t *archive.Ticket) *archive.RequestID { return &t.Request }),
}}

var registrationForm = &message[ledger.Registration]{"Registration", []field[ledger.Registration]{
	partField(1, "ticket", ticketForm, func(r *ledger.Registration) *archive.Ticket { return &r.Ticket }),
	numberField(2, "generation", func(r *ledger.Registration) *uint8 { return &r.Generation }),
	numberField(3, "sends", func(r *ledger.Registration) *uint16 { return &r.UploadIntents }),
	numberField(4, "clear", func(r *ledger.Registration) *uint16 { return &r.WithoutEffect }),
	numberField(5, "fate", func(r *ledger.Registration) *ledger.Fate { return &r.Fate }),
	instantField(6, "closed", func(r *ledger.Registration) *time.Time { return &r.ClosedAt }),
	numberField(7, "word", func(r *ledger.Registration) *archive.ServiceStatus { return &r.LastStatus }),
	numberField(8, "equal", func(r *ledger.Registration) *uint8 { return &r.EqualAnswers }),
	instantField(9, "last", func(r *ledger.Registration) *time.Time { return &r.LastAnswer }),
	fixedField(10, "sent", func(r *ledger.Registration) []byte { return r.Sent[:] }),
	instantField(11, "succeeded_at", func(r *ledger.Registration) *time.Time { return &r.SucceededAt }),
	flagField(12, "from_lost_part", func(r *ledger.Registration) *bool { return &r.FromLostPart }),
	flagField(13, "unproven", func(r *ledger.Registration) *bool { return &r.Unproven }),
	flagField(14, "differs", func(r *ledger.Registration) *bool { return &r.Differs }),
}}

var prunedForm = &message[ledger.RegistrationsPruned]{"Folded", []field[ledger.RegistrationsPruned]{
	numberField(1, "unsent", func(f *ledger.RegistrationsPruned) *uint32 { return &f.Unsent }),
	numberField(2, "lapsed", func(f *ledger.RegistrationsPruned) *uint32 { return &f.Lapsed }),
}}

var entryForm = &message[ledger.Entry]{"Entry", []field[ledger.Entry]{
	fixedField(1, "key", func(e *ledger.Entry) []byte { return e.Key[:] }),
	numberField(2, "rev", func(e *ledger.Entry) *uint32 { return &e.Rev }),
	numberField(3, "state", func(e *ledger.Entry) *ledger.State { return &e.State }),
	numberField(4, "source", func(e *ledger.Entry) *ledger.Source { return &e.Source }),
	textField(5, "route", func(e *ledger.Entry) *ledger.Route { return &e.Route }),
	textField(6, "vault", func(e *ledger.Entry) *archive.VaultID { return &e.Vault }),
	textField(7, "drop", func(e *ledger.Entry) *string { return &e.Drop }),
	textField(8, "folder", func(e *ledger.Entry) *string { return &e.Folder }),
	numberField(9, "owner", func(e *ledger.Entry) *uint32 { return &e.Owner }),
	partField(10, "node", nodeForm, func(e *ledger.Entry) *ledger.Node { return &e.Node }),
	fixedField(11, "look", func(e *ledger.Entry) []byte { return e.Fingerprint[:] }),
	fixedField(12, "id", func(e *ledger.Entry) []byte { return e.ID[:] }),
	fixedField(13, "base", func(e *ledger.Entry) []byte { return e.FirstID[:] }),
	numberField(14, "generation", func(e *ledger.Entry) *uint8 { return &e.Generation }),
	flagField(15, "chosen", func(e *ledger.Entry) *bool { return &e.IDFromSidecar }),
	fixedField(16, "content", func(e *ledger.Entry) []byte { return e.Content[:] }),
	fixedField(17, "metadata", func(e *ledger.Entry) []byte { return e.Metadata[:] }),
	partField(18, "package", packageForm, func(e *ledger.Entry) *archive.Package { return &e.Package }),
	listField(19, "registrations", registrationForm, func(e *ledger.Entry) *[]ledger.Registration { return &e.Registrations }),
	numberField(20, "posts", func(e *ledger.Entry) *uint16 { return &e.Posts }),
	numberField(21, "answers", func(e *ledger.Entry) *uint16 { return &e.Answers }),
	numberField(22, "lost", func(e *ledger.Entry) *uint16 { return &e.LostAnswers }),
	numberField(23, "failures", func(e *ledger.Entry) *uint8 { return &e.Failures }),
	numberField(24, "part", func(e *ledger.Entry) *uint16 { return &e.BatchLimit }),
	numberField(25, "attempt", func(e *ledger.Entry) *uint16 { return &e.Attempt }),
	instantField(26, "not_before", func(e *ledger.Entry) *time.Time { return &e.NotBefore }),
	fixedField(27, "after", func(e *ledger.Entry) []byte { return e.WaitsFor[:] }),
	partField(28, "cause", causeForm, func(e *ledger.Entry) *ledger.Cause { return &e.Cause }),
	flagField(29, "hold", func(e *ledger.Entry) *bool { return &e.Hold }),
	flagField(30, "in_doubt", func(e *ledger.Entry) *bool { return &e.InDoubt }),
	flagField(31, "double", func(e *ledger.Entry) *bool { return &e.PossibleDouble }),
	flagField(32, "contradicted", func(e *ledger.Entry) *bool { return &e.Contradicted }),
	flagField(33, "resolved", func(e *ledger.Entry) *bool { return &e.Resolved }),
	fixedField(34, "first", func(e *ledger.Entry) []byte { return e.DuplicateOf[:] }),
	fixedField(35, "same_content", func(e *ledger.Entry) []byte { return e.SameContent[:] }),
	fixedField(36, "supersedes", func(e *ledger.Entry) []byte { return e.Supersedes[:] }),
	textField(37, "archived", func(e *ledger.Entry) *archive.RemoteID { return &e.ArchivedRemote }),
	rawField(38, "record", func(e *ledger.Entry) *[]byte { return &e.SuccessRecord }),
	textField(39, "dest", func(e *ledger.Entry) *string { return &e.Dest }),
	instantField(40, "seen_at", func(e *ledger.Entry) *time.Time { return &e.SeenAt }),
	instantField(41, "registered_at", func(e *ledger.Entry) *time.Time { return &e.RegisteredAt }),
	instantField(42, "uploaded_at", func(e *ledger.Entry) *time.Time { return &e.UploadedAt }),
	instantField(43, "archived_at", func(e *ledger.Entry) *time.Time { return &e.ArchivedAt }),
	instantField(44, "dispose_at", func(e *ledger.Entry) *time.Time { return &e.DisposeAt }),
	flagField(45, "needs_reconcile", func(e *ledger.Entry) *bool { return &e.NeedsReconcile }),
	partField(46, "folded", prunedForm, func(e *ledger.Entry) *ledger.RegistrationsPruned { return &e.Pruned }),
	flagField(47, "duplicate_confirmed", func(e *ledger.Entry) *bool { return &e.DuplicateConfirmed }),
	fixedField(48, "number", func(e *ledger.Entry) []byte { return e.Number[:] }),
	fixedField(49, "same_number", func(e *ledger.Entry) []byte { return e.SameNumber[:] }),
	flagField(50, "strange_date", func(e *ledger.Entry) *bool { return &e.StrangeDate }),
	flagField(51, "checked", func(e *ledger.Entry) *bool { return &e.Reviewed }),
	flagField(52, "packed_anew", func(e *ledger.Entry) *bool { return &e.PackedAnew }),
	itemsField(53, "stored_files", "string", func(e *ledger.Entry) *[]archive.FileID { return &e.StoredFiles }),
	numberField(54, "file_posts", func(e *ledger.Entry) *uint16 { return &e.FilePosts }),
	numberField(55, "file_answers", func(e *ledger.Entry) *uint16 { return &e.FileAnswers }),
	fixedField(56, "body", func(e *ledger.Entry) []byte { return e.Body[:] }),
	numberField(57, "recipient", func(e *ledger.Entry) *ledger.RecipientWord { return &e.Recipient }),
	textField(58, "means", func(e *ledger.Entry) *string { return &e.Means }),
	numberField(59, "copy", func(e *ledger.Entry) *ledger.CopyState { return &e.Copy }),
	numberField(60, "validation", func(e *ledger.Entry) *ledger.ValidationState { return &e.Validation }),
	textField(61, "validation_file", func(e *ledger.Entry) *archive.FileID { return &e.ValidationFile }),
	textField(62, "asks", func(e *ledger.Entry) *string { return &e.Asks }),
	numberField(63, "cut_off", func(e *ledger.Entry) *ledger.CutOffState { return &e.CutOff }),
	requestField(64, "sent_request", func(e *ledger.Entry) *archive.RequestID { return &e.SentRequest }),
	requestField(65, "asked_request", func(e *ledger.Entry) *archive.RequestID { return &e.AskedRequest }),
}}

var fileForm = &message[archive.File]{"File", []field[archive.File]{
	textField(1, "path", func(f *archive.File) *string { return &f.Path }),
	signedField(2, "size", func(f *archive.File) *int64 { return &f.Size }),
	fixedField(3, "sha256", func(f *archive.File) []byte { return f.SHA256[:] }),
	textField(4, "type", func(f *archive.File) *archive.FileType { return &f.Type }),
}}

var ownerForm = &message[uint32]{"Owner", []field[uint32]{
	numberField(1, "uid", func(uid *uint32) *uint32 { return uid }),
}}

var asReadForm = &message[archive.AsRead]{"AsRead", []field[archive.AsRead]{
	textField(1, "document_type", func(a *archive.AsRead) *string { return &a.Type }),
	textField(2, "document_id", func(a *archive.AsRead) *string { return &a.Number }),
	textField(3, "document_date", func(a *archive.AsRead) *string { return &a.Date }),
	textField(4, "sender_name", func(a *archive.AsRead) *string { return &a.SenderName }),
	textField(5, "sender_ids", func(a *archive.AsRead) *string { return &a.SenderIDs }),
	textField(6, "recipient_name", func(a *archive.AsRead) *string { return &a.RecipientName }),
	textField(7, "recipient_ids", func(a *archive.AsRead) *string { return &a.RecipientIDs }),
	textField(8, "amount", func(a *archive.AsRead) *string { return &a.Amount }),
	textField(9, "currency_code", func(a *archive.AsRead) *string { return &a.Currency }),
}}

var documentForm = &message[ledger.Document]{"Document", []field[ledger.Document]{
	fixedField(1, "salt", func(d *ledger.Document) []byte { return d.Salt[:] }),
	rawField(2, "metadata", func(d *ledger.Document) *[]byte { return &d.Metadata }),
	listField(3, "files", fileForm, func(d *ledger.Document) *[]archive.File { return &d.Files }),
	listField(4, "others", fileForm, func(d *ledger.Document) *[]archive.File { return &d.ControlFiles }),
	itemsField(5, "junk", "string", func(d *ledger.Document) *[]string { return &d.Junk }),
	partField(6, "as_read", asReadForm, func(d *ledger.Document) *archive.AsRead { return &d.AsRead }),
	itemsField(7, "remarks", "string", func(d *ledger.Document) *[]string { return &d.Remarks }),
	listField(8, "file_owners", ownerForm, func(d *ledger.Document) *[]uint32 { return &d.FileOwners }),
}}

// documentTextsForm reads the same records and steps over the lists. Nothing is written with it.
var documentTextsForm = &message[ledger.Document]{documentForm.name, []field[ledger.Document]{
	documentForm.fields[0], documentForm.fields[1], steppedOver(documentForm.fields[2]), steppedOver(documentForm.fields[3]), steppedOver(documentForm.fields[4]), documentForm.fields[5], documentForm.fields[6], documentForm.fields[7],
}}

var noteForm = &message[ledger.Note]{"Note", []field[ledger.Note]{
	fixedField(1, "salt", func(n *ledger.Note) []byte { return n.Salt[:] }),
	textField(2, "text", func(n *ledger.Note) *string { return &n.Text }),
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
	fixedField(1, "prev", func(b *block) []byte { return b.prev[:] }),
	numberField(2, "count", func(b *block) *uint64 { return &b.count }),
	itemsField(3, "lines", "bytes", func(b *block) *[][]byte { return &b.lines }),
}}

var infoForm = &message[ledger.Info]{"Info", []field[ledger.Info]{
	textField(1, "id", func(i *ledger.Info) *string { return &i.ID }),
	textField(2, "environment", func(i *ledger.Info) *string { return &i.Environment }),
	textField(3, "base_url", func(i *ledger.Info) *string { return &i.BaseURL }),
	instantField(4, "created", func(i *ledger.Info) *time.Time { return &i.Created }),
	numberField(5, "epoch", func(i *ledger.Info) *uint64 { return &i.Epoch }),
	listField(6, "others", addressForm, func(i *ledger.Info) *[]ledger.Address { return &i.Others }),
	itemsField(7, "receipt_keys", "string", func(i *ledger.Info) *[]string { return &i.ReceiptKeys }),
}}

var addressForm = &message[ledger.Address]{"Address", []field[ledger.Address]{
	textField(1, "key", func(a *ledger.Address) *string { return &a.Key }),
	textField(2, "url", func(a *ledger.Address) *string { return &a.URL }),
}}

// secret is what a ledger keeps for itself: the key of the digests that replace
// objects at the service's store, and the seed of the key that signs receipts.
// It is made with the ledger, and a copy of the ledger has it too: the copy
// needs it to find digests, and to sign.
type secret struct{ key, seed [32]byte }

var secretForm = &message[secret]{"Secret", []field[secret]{
	fixedField(1, "key", func(s *secret) []byte { return s.key[:] }),
	fixedField(2, "receipt_seed", func(s *secret) []byte { return s.seed[:] }),
}}

func newSecret() (s secret) {
	_, _ = rand.Read(s.key[:]) // they always succeed
	_, _ = rand.Read(s.seed[:])
	return s
}

// signingKey returns the private key that signs receipts.
func (s secret) signingKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(s.seed[:]) }

// publicKey returns the public half as people and programs read it: base64 of
// its X.509 form, as between the lines of a PEM file.
func (s secret) publicKey() string {
	der, err := x509.MarshalPKIXPublicKey(s.signingKey().Public())
	if err != nil {
		panic(fmt.Sprintf("encode a public key: %v", err)) // an Ed25519 key always encodes
	}
	return base64.StdEncoding.EncodeToString(der)
}

// SignReceipt signs the text of a receipt with the key of this ledger, and
// returns the signature with the public half of the key, which is the first of
// [ledger.Info.ReceiptKeys].
func (l *Ledger) SignReceipt(text []byte) (signature []byte, publicKey string) {
	return ed25519.Sign(l.secret.signingKey(), text), l.secret.publicKey()
}

func readSecret(meta *bbolt.Bucket) (secret, error) {
	s, err := secretForm.decode(meta.Get(secretKey))
	if err == nil && (s.key == [32]byte{} || s.seed == [32]byte{}) {
		err = errors.New("read Secret: it is empty")
	}
	if err != nil {
		return s, damage("%v", err)
	}
	return s, nil
}

// stateCount is how many entries are in one state.
type stateCount struct {
	state   ledger.State
	entries uint64
}

var stateCountForm = &message[stateCount]{"StateCount", []field[stateCount]{
	numberField(1, "state", func(t *stateCount) *ledger.State { return &t.state }),
	numberField(2, "entries", func(t *stateCount) *uint64 { return &t.entries }),
}}

// summary is what changes with every commit: where the journal ends, the balance, and
// how far the clocks were apart.
type summary struct {
	head    ledger.Head
	seen    uint64
	counts  []stateCount
	marks   uint64    // lines that belong to no entry, the first one not counted
	alarmed time.Time // the latest that one of them tells of having lost something
	clocks  clockComparison

	arrivalsSeen uint64
	arrivals     []arrivalCount

	names uint64 // records in the bucket of names
}

// clockComparison is what the newest answer to a registration that gave the service's time tells of the clocks; zero: none did.
type clockComparison struct {
	asked   time.Time // by our clock, before the call left
	service time.Time // by the service's clock, as it answered
}

var summaryForm = &message[summary]{"Summary", []field[summary]{
	numberField(1, "n", func(s *summary) *uint64 { return &s.head.N }),
	fixedField(2, "hash", func(s *summary) []byte { return s.head.Hash[:] }),
	numberField(3, "seen", func(s *summary) *uint64 { return &s.seen }),
	listField(4, "state_counts", stateCountForm, func(s *summary) *[]stateCount { return &s.counts }),
	numberField(5, "marks", func(s *summary) *uint64 { return &s.marks }),
	instantField(6, "alarmed", func(s *summary) *time.Time { return &s.alarmed }),
	instantField(7, "asked", func(s *summary) *time.Time { return &s.clocks.asked }),
	instantField(8, "service", func(s *summary) *time.Time { return &s.clocks.service }),
	numberField(9, "arrivals_seen", func(s *summary) *uint64 { return &s.arrivalsSeen }),
	listField(10, "arrivals", arrivalCountForm, func(s *summary) *[]arrivalCount { return &s.arrivals }),
	numberField(11, "names", func(s *summary) *uint64 { return &s.names }),
}}

var totalForm = &message[spanTotal]{"Total", []field[spanTotal]{
	textField(1, "vault", func(t *spanTotal) *archive.VaultID { return &t.Vault }),
	signedField(2, "from", func(t *spanTotal) *int64 { return &t.From }),
	numberField(3, "documents", func(t *spanTotal) *uint64 { return &t.Documents }),
	numberField(4, "bytes", func(t *spanTotal) *uint64 { return &t.Bytes }),
	instantField(5, "last", func(t *spanTotal) *time.Time { return &t.Last }),
	numberField(6, "unsized", func(t *spanTotal) *uint64 { return &t.Unsized }),
}}

var countForm = &message[count]{"Count", []field[count]{
	numberField(1, "number", func(c *count) *uint64 { return &c.number }),
}}

// safeMode is why the ledger is in safe mode, and whether some of its entries still have to
// be marked as to be reconciled: whoever opens the ledger finishes that first.
type safeMode struct {
	ledger.SafeMode
	marking bool
}

var safeForm = &message[safeMode]{"Safe", []field[safeMode]{
	textField(1, "word", func(s *safeMode) *string { return &s.Mark }),
	textField(2, "cause", func(s *safeMode) *string { return &s.Cause }),
	instantField(3, "since", func(s *safeMode) *time.Time { return &s.Since }),
	instantField(4, "from", func(s *safeMode) *time.Time { return &s.KnownUntil }),
	flagField(5, "doubting", func(s *safeMode) *bool { return &s.marking }),
}}

// incarnation numbers the files of one ledger. A restore, a rebuild and a
// start on an older file begin a later one, which has an outside head of its
// own: no head of an earlier file is taken for that of a later one.
type incarnation struct {
	n    uint64
	from uint64 // the journal line with which it began: up to it, there may be no outside head yet
}

var incarnationForm = &message[incarnation]{"Incarnation", []field[incarnation]{
	numberField(1, "n", func(i *incarnation) *uint64 { return &i.n }),
	numberField(2, "from", func(i *incarnation) *uint64 { return &i.from }),
}}

// encodeEntry writes an entry, but for what the rest of it tells (the identity, of the first one
// and the generation), what the spool tells (where the package lies), and what nobody asks for
// once the entry is at rest (the digest that went along with an upload).
func encodeEntry(e ledger.Entry, home []byte) []byte {
	// Left out where it can be computed: sixteen bytes of every entry.
	if e.ID == identityOf(e, e.Generation) {
		e.ID = archive.ID{}
	}
	if bytes.Equal(home, doneBucket) {
		e.Package.MD5 = [16]byte{}
	}
	e.Package.Path = ""
	return entryForm.encode(&e)
}

// decodeEntry reads an entry and refuses numbers that this schema does not know: a
// state is an index into the balance.
func decodeEntry(record []byte) (ledger.Entry, error) {
	e, err := entryForm.decode(record)
	if err == nil && (e.State == ledger.None || e.State > ledger.Quarantined || e.Source > ledger.Gone) {
		err = fmt.Errorf("read Entry: state %d, source %d", e.State, e.Source)
	}
	// Computed again, so that readers never see the difference.
	if e.ID.IsZero() && !e.FirstID.IsZero() {
		e.ID = identityOf(e, e.Generation)
	}
	return e, err
}
