package page

import (
	"cmp"
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

// documentBody is the page of one document.
type documentBody struct {
	present.Dossier
	Meaning       string
	Flags         []string
	Reason        []string // lines
	Invoice       []field
	Parameters    []field // with names of the sidecar's own
	IsAsRead      bool
	Proof         []field
	Registrations []present.Registration
	Steps         []step
	IsHistoryCut  bool // Steps lacks some
	CanDownload   bool
	HasReceipt    bool
	Words         present.Words // of its route
	Downloads     present.DownloadCounts
}

func (p *Pages) showDocument(w http.ResponseWriter, r *http.Request, f *frame) error {
	d, err := p.findDocument(r)
	if err != nil {
		return err
	}
	s := d.JSON(f.clock)
	b := documentBody{Dossier: d, Meaning: s.Meaning, Flags: s.Flags, Registrations: s.Registrations, Proof: f.proofOf(d), Steps: f.stepsOf(d), HasReceipt: isDownloadable(d) || isDelivered(d), Words: present.WordsOf(d.Entry.Route)}
	b.Invoice, b.IsAsRead = f.invoiceOf(d)
	b.Parameters = f.parametersOf(d)
	b.IsHistoryCut = len(d.History) < int(d.Entry.Rev)
	if cause := d.Entry.Cause; cause != (ledger.Cause{}) {
		b.Reason = strings.Split(strings.TrimSpace(cmp.Or(present.CauseText(d.Entry), strings.ReplaceAll(cause.Code, "-", " "))), "\n")
	}
	if isDownloadable(d) && f.Visitor.Rights.Fetch && f.Visitor.Token != "" {
		status, err := p.source.Status(r.Context())
		if err != nil {
			return err
		}
		b.CanDownload, b.Downloads = status.Downloads.Allowed > 0, status.Downloads
	}
	f.writePage(w, http.StatusOK, "document", sanitize.Text(d.Entry.Folder), b)
	return nil
}

// findDocument reads the document that the path names.
func (p *Pages) findDocument(r *http.Request) (present.Dossier, error) {
	key, err := keyOf(r)
	if err != nil {
		return present.Dossier{}, err
	}
	d, ok, err := p.source.Document(r.Context(), key)
	if err == nil && !ok {
		err = NoSuchDocument()
	}
	return d, err
}

// keyOf returns the key in a path.
func keyOf(r *http.Request) (archive.Key, error) {
	key, err := archive.ParseKey(r.PathValue("key"))
	if err != nil {
		return key, NoSuchDocument()
	}
	return key, nil
}

// NoSuchDocument refuses a key that no document has.
func NoSuchDocument() *Refusal {
	return &Refusal{Status: http.StatusNotFound, Text: "There is no such document.", Do: "Search for it by its folder, number or sender."}
}

// invoiceOf returns what is known of the invoice.
func (f *frame) invoiceOf(d present.Dossier) (fields []field, isAsRead bool) {
	m := d.Metadata
	if isAsRead = d.Document.IsOnlyAsRead(); isAsRead {
		m = documentOf(d.Document.AsRead)
	}
	fields = append(f.invoiceFields(m), field{"Type", m.Type}, field{"Numbers of the sender", strings.Join(m.SenderIDs, ", ")},
		field{"Numbers of the recipient", strings.Join(m.RecipientIDs, ", ")}, field{"Buyer's reference", m.BuyerReferenceID},
		field{"Trading partner", m.TradingPartner}, field{"Direction", m.FlowDirection})
	for _, to := range d.Addresses {
		fields = append(fields, field{addressNames[to.Name], to.Value})
	}
	return f.knownFields(fields...), isAsRead
}

// addressNames are the names of addresses for people.
var addressNames = map[string]string{"receivingEmailAddress": "Sent to", "notificationEmailAddress": "Notified"}

// parametersOf returns the further fields of checked metadata. Their names are texts of the sidecar: nothing translates them.
func (f *frame) parametersOf(d present.Dossier) (fields []field) {
	for _, more := range d.Metadata.Parameters {
		fields = append(fields, field{sanitize.Text(more.Key), more.Value})
	}
	return f.knownFields(fields...)
}

// proofOf returns by what the document can be proven.
func (f *frame) proofOf(d present.Dossier) []field {
	e := d.Entry
	moment := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return f.FormatExactTime(t)
	}
	fields := []field{
		{"Taken", moment(e.SeenAt)}, {"Archived", moment(e.ArchivedAt)}, {"Delivered", moment(deliveredAt(e))}, {"Means", f.T(present.DescribeMeans(e))}, {"Recipient's answer", f.T(present.DescribeRecipient(e))}, {"Check", f.T(present.DescribeValidation(e))}, {"Drop folder", e.Drop}, {"Vault", string(e.Vault)}, {"Folder", f.describePlace(d)}, {"Folder looked at", f.describeLook(d, moment)},
		{"bumId", string(present.RemoteNumber(e))}, {"Key", e.Key.String()},
	}
	if !e.ID.IsZero() {
		fields = append(fields, field{present.WordsOf(e.Route).Identity, e.ID.String()})
	}
	if !e.Package.IsZero() {
		fields = append(fields, field{present.WordsOf(e.Route).Package, f.ExactSize(e.Package.Size)}, field{"SHA-256", e.Package.SHA256.String()})
	}
	return f.knownFields(fields...)
}

// describePlace says what became of the folder.
func (f *frame) describePlace(d present.Dossier) string {
	e := d.Entry
	if !d.MissingSince().IsZero() || e.IsSourceMissing() {
		return f.T("not there any more") + ": " + e.Dest
	}
	words := f.T("folder " + e.Source.String())
	if e.State == ledger.Delivered && e.Source == ledger.Kept {
		words = f.T(present.WordsOf(e.Route).KeptPlace)
	}
	if e.Dest == "" {
		return words
	}
	return words + ": " + e.Dest
}

// describeLook says when a kept folder was last looked at; empty: it is not kept.
func (f *frame) describeLook(d present.Dossier, moment func(time.Time) string) string {
	if at := d.CheckedAt(); d.Entry.Source != ledger.Kept || !at.IsZero() {
		return moment(at)
	}
	return f.T("not since vaultd put it there")
}

// step is one line of the journal about a document, in words.
type step struct {
	At, Time string
	Text     string
	More     string // what the archive said, under which number, who acted
	Said     string // the reason that a person gave
}

// eventTexts say in words what the events of the journal are. One that means something else in a state has the state behind it.
var eventTexts = map[string]string{
	"claimed": "Taken from the drop folder.", "still-changing": "It was still changing; vaultd waits.", "postponed": "The next step was postponed.",
	"sealed": "Packed into a ZIP and sealed.", "resealed": "Packed again; the content is the same.", "refused": "Refused before anything was sent.",
	"sealed quarantined": "Its content was read, so that it is recognised when it is dropped again.",
	"duplicate":          "Found to be archived already; nothing is sent.", "quarantined": "It cannot go on by itself.", "held": "A person put it on hold.",
	"unheld": "A person let it go on.", "closed": "A person closed it.", "released": "A person decided how it goes on.",
	"superseded": "Another folder takes its place.", "retaken": "It was taken again.", "reconcile-required": "It is not sure what was done since; the archive is asked.",
	"registration-found": "The archive knows a registration that vaultd did not know.", "reconciled": "The archive was asked for everything; it is sure again.",
	"source-found": "The folder was found again.", "recovered": "Put back into the ledger from receipts, folders or the archive.",
	"register-intended": "About to be registered with the archive.", "register-unanswered": "The archive did not answer the registration.",
	"register-not-taken": "The archive did not take the registration.", "batch-refused": "The archive refused a group of registrations.",
	"register-refused": "The archive refused the registration.", "registered": "Registered with the archive.",
	"cross-wired": "The answer of the archive was mixed up.", "upload-intended": "About to be sent.", "upload-not-sent": "Nothing was sent.",
	"upload-unanswered": "The store did not answer; it may have it.", "upload-refused": "The store refused it.", "uploaded": "Sent completely.",
	"window-closed": "The time for sending is over.", "place-intended": "The folder is about to be moved to its place.", "placed": "The folder is at its place.",
	"dispose-intended": "The kept folder is about to be removed.", "disposed": "The kept folder was removed as configured.",
	"content-compared":   "A download was compared with what was sent: it is the same.",
	"content-differs":    "A download was compared with what was sent: it is not the same.",
	"source-checked":     "The kept folder was looked at: something about it is new.",
	"source-untouchable": "The kept folder is not removed.", "status-seen": "The archive was asked.",
	"ticket-shared": "Its number or its address was given to another document too.",
	"outcome-late":  "What became of an earlier call was heard late.",
}

// routeEventTexts say it of a document of a route, where it is something else there.
var routeEventTexts = map[ledger.Route]map[string]string{ledger.PDF: pdfEventTexts, ledger.Network: networkEventTexts}

var pdfEventTexts = map[string]string{
	"sealed": "Checked and copied.", "resealed": "Copied again; the content is the same.", "unsealed": "It goes to another address now: it is checked and copied again.",
	"duplicate": "Found to be delivered already; nothing is sent.", "reconcile-required": "It is not sure what was done since.", "reconciled": "It was compared with the folders; it is sure again.",
	"recovered": "Put back into the ledger from its delivery note or its folder.", "register-intended": "An upload address is about to be asked for.",
	"register-unanswered": "The request for an upload address was not answered.", "register-not-taken": "The request for an upload address was not taken.",
	"batch-refused": "The service refused an upload address.", "register-refused": "The service refused an upload address.", "registered": "An upload address came.",
	"cross-wired": "The answer of the service was mixed up.", "delivered": "Delivered: the accounts-payable system has taken all of it.",
}

// networkEventTexts are of what is sent over the business network.
var networkEventTexts = map[string]string{
	"sealed": "Checked and packed.", "resealed": "Packed again; the content is the same.", "duplicate": "Found to be delivered already; nothing is sent.",
	"reconcile-required": "It is not sure what was done since.", "reconciled": "It was compared with the folders; it is sure again.",
	"recovered": "Put back into the ledger from its delivery note or its folder.", "registration-found": "The business network knows it under a number that vaultd did not know.",
	"register-intended": "Its number (bumId) is about to be noted.", "register-unanswered": "Its number (bumId) was not noted.", "register-not-taken": "Its number (bumId) was not noted.",
	"batch-refused": "Its number (bumId) was not noted.", "register-refused": "Its number (bumId) was not noted.", "registered": "It has its number (bumId).",
	"cross-wired": "The answer of the business network was mixed up.", "upload-unanswered": "The business network did not answer; it may have it.", "upload-refused": "The business network refused it.",
	"uploaded": "The business network has it.", "status-seen": "The business network was asked.", "delivered": "Delivered: the business network says that it delivered it.",
	"files-intended": "Its files are about to be sent.", "files-stored": "The business network has stored files of it.",
	"document-intended": "The document is about to be sent under its number.", "document-taken": "The business network has taken the document.",
	"document-refused": "The business network refused the document or a file of it.", "notification-seen": "The business network told what became of it.",
	"copy-put": "A copy of what was sent was put into a drop folder of the archive.",
}

// textOfEvent says in words what a line of the journal tells about a document of a route; empty: there are no words for it.
func textOfEvent(r ledger.Route, l ledger.Line) string {
	return cmp.Or(eventTexts[l.Event+" "+l.State], routeEventTexts[r][l.Event], eventTexts[l.Event])
}

// stepsOf tells the history of a document, the oldest step first.
func (f *frame) stepsOf(d present.Dossier) (all []step) {
	for _, l := range d.History {
		s := step{At: l.At, Time: l.At, Text: sanitize.Text(l.Event), Said: sanitize.JoinLines(d.Notes[l.Rev].Text)}
		if t, err := time.Parse(time.RFC3339, l.At); err == nil {
			s.Time = f.FormatExactTime(t)
		}
		if text := textOfEvent(d.Entry.Route, l); text != "" {
			s.Text = f.T(text)
		}
		var more []string
		add := func(key, value string) {
			if value != "" {
				more = append(more, f.T(key, sanitize.Text(value)))
			}
		}
		add(present.WordsOf(d.Entry.Route).Says, l.Status)
		add("bumId %s", l.Remote)
		add("cause: %s", strings.ReplaceAll(l.Cause, "-", " "))
		switch {
		case l.UID != nil && present.IsOwnerOnly(l):
			add("a folder of %s", present.UserName(uint32(*l.UID)))
		case l.UID != nil:
			add("by %s", present.UserName(uint32(*l.UID)))
		}
		s.More = strings.Join(more, ", ")
		all = append(all, s)
	}
	return all
}

// sendReceipt delivers the receipt of an archived document.
func (p *Pages) sendReceipt(w http.ResponseWriter, r *http.Request, f *frame) error {
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	receipt, err := p.source.Receipt(f.Visitor.Name, key)
	if err != nil {
		return err
	}
	beginFile(w, "receipt-"+key.String()+".json", "application/json").Write(receipt) //lint:ignore errcheck the visitor went away
	return nil
}

// download delivers an archived document. It is a POST, so that no browser fetches it before somebody asks.
func (p *Pages) download(w http.ResponseWriter, r *http.Request, f *frame) error {
	if !f.Visitor.Rights.Fetch {
		return &Refusal{Status: http.StatusForbidden, Text: "You may not download documents.", Do: "Ask IT for the right to fetch (http.access in the configuration)."}
	}
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	giveTime(w)
	ctx, cancel := context.WithTimeout(r.Context(), longAnswer) // an archive that never ends its answer takes no place for ever
	defer cancel()
	return p.source.Download(ctx, f.Visitor.Name, key, func(came Delivery) io.Writer {
		giveTime(w) // anew: what the archive took does not shorten the visitor's time, who may have paid for it
		name := came.Name
		if came.Differs {
			name += ".differs"
		}
		w.Header().Set("Content-Length", strconv.FormatInt(came.Size, 10))
		return beginFile(w, name, "application/zip")
	})
}

// longAnswer is how long an answer may take to begin that reads the whole ledger or asks the archive, and how long it may then take to arrive.
const longAnswer = 30 * time.Minute

// timeToRefuse is left to tell the visitor that it took too long.
const timeToRefuse = 30 * time.Second

// giveTime lets an answer take longer than the pages.
func giveTime(w http.ResponseWriter) {
	// If the time cannot be changed the shorter one stays, and a slow answer is
	// cut off.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(longAnswer + timeToRefuse))
}

// beginFile begins an answer that the browser stores as a file.
func beginFile(w http.ResponseWriter, name, kind string) io.Writer {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	return w
}
