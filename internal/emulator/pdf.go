package emulator

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/mail"
	"path"
	"slices"
	"strings"
	"time"
)

// PDF describes the PDF upload. Its zero value is a service that the main account may use, and that knows every address.
type PDF struct {
	Path      string        // of pdf-register, default /v2/pdf/invoiceUpload
	Account   Account       // that alone may use it; zero: the main one
	Scope     string        // that a bearer token needs, default importDocuments.write; an Account of its own is granted it alone, the main one by Config.Scopes
	Window    time.Duration // life of an upload address in whole seconds, default 1h
	Receiving []string      // the receiving addresses that it knows, in any case; empty: every address
}

func (p *PDF) setDefaults() {
	setDefault(&p.Path, "/v2/pdf/invoiceUpload")
	setDefault(&p.Scope, "importDocuments.write")
	setDefault(&p.Window, time.Hour)
}

func (p *PDF) check() error {
	if p.Path != path.Clean(p.Path) || len(p.Path) < 2 || p.Path[0] != '/' || strings.ContainsAny(p.Path, "{} \t") || p.Path == "/v1/tokens" {
		return fmt.Errorf("path of the PDF upload %q is not a plain absolute path of its own", p.Path)
	}
	if len(strings.Fields(p.Scope)) != 1 {
		return fmt.Errorf("scope of the PDF upload %q is not one word", p.Scope)
	}
	for _, a := range p.Receiving {
		if !isAddress(a) {
			return fmt.Errorf("receiving address %q of the PDF upload is no e-mail address", a)
		}
	}
	return checkWindow("of the PDF upload", p.Window)
}

// pdfService is the PDF upload. Its addresses are good for one slot each, and a slot takes one document.
func (c *Config) pdfService() *service {
	scopes := []string{c.PDF.Scope}
	if c.PDF.Account == (Account{}) {
		scopes = c.Scopes
	}
	return &service{accounts: []Account{c.PDF.Account}, scopes: scopes, requireScope: c.PDF.Scope, startsSlowly: true,
		errorForm: func(r Readings) string { return r.PDF.ErrorBody }}
}

// maxSlotBody bounds the body of pdf-register, in bytes. Its two addresses need far less.
const maxSlotBody = 64 << 10

// registerSlot makes one slot and answers with its address.
func (s *Server) registerSlot(c *call) reply {
	if t, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return c.refusal(http.StatusBadRequest, "VALIDATION", "Content-Type must be application/json")
	}
	body, tooLong, err := readBody(c.Request, maxSlotBody)
	if err != nil {
		return reply{} // the client went away in the middle: there is nobody to answer
	}
	if tooLong {
		return c.refusal(http.StatusRequestEntityTooLarge, "TOO_LARGE", fmt.Sprintf("the body must have at most %d bytes", maxSlotBody))
	}
	who, problems, unreadable := parseSlotBody(body, s.cfg.PDF.Receiving)
	switch {
	case unreadable != "":
		c.record.Text = unreadable
		return c.refusal(http.StatusBadRequest, "VALIDATION", unreadable)
	case len(problems) > 0:
		c.record.Text = describeProblems(problems)
		return c.unprocessable(problems)
	}
	g, err := s.addSlot(c, who)
	if err != nil {
		return reply{} // a slot that is not in the journal must not be answered: it would be unknown after a restart
	}
	grant := slotGrant{bumID: g.BumID}
	if grant.address, err = s.slotAddress(c, g, c.now); err == nil {
		grant, err = s.spoilGrant(c, g, grant)
	}
	if err != nil {
		return c.refusal(http.StatusInternalServerError, "INTERNAL", "no upload address")
	}
	return c.slotReply(grant)
}

// slotGrant is what an answer gives: a bumId and an upload address.
type slotGrant struct{ bumID, address string }

// slotReply answers a grant in the form of the readings.
func (c *call) slotReply(g slotGrant) reply {
	answer := map[string]any{}
	if c.reading.PDF.BumID == "told" {
		answer["bumId"] = c.spellNewBumID(g.bumID)
	}
	switch {
	case g.address == "":
	case c.reading.PDF.URLForm == "object":
		answer["uploadUrl"] = map[string]string{"url": g.address}
	default:
		answer[c.reading.PDF.URLForm] = g.address
	}
	return jsonReply(answer)
}

// addSlot records a slot.
func (s *Server) addSlot(c *call, who slotAddressees) (*slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.newUUID()
	c.record.BumIDs = []string{id}
	// A kill after this line and before the answer leaves a slot that nobody has the address of.
	err := s.commitLines(journalLine{Time: c.now, Kind: kindSlot, BumID: id, Window: s.cfg.PDF.Window, PDF: &who})
	return s.state.pdf.byID[id], err
}

// slotAddress returns the address of a slot's object as it is made at a time.
func (s *Server) slotAddress(c *call, g *slot, at time.Time) (string, error) {
	return s.signSlotAddress(c, s.objectURL(c, "pdf", g.BumID+".pdf"), at, s.cfg.PDF.Window)
}

// signSlotAddress signs an address in the form of the readings.
func (s *Server) signSlotAddress(c *call, base string, at time.Time, life time.Duration) (string, error) {
	contentType := ""
	if c.reading.PDF.ContentType == "signed" {
		contentType = "application/pdf"
	}
	if c.reading.PDF.Validity == "untold" {
		return s.keys.sealAddress(base, addressGrant{Issued: at, Life: life, ContentType: contentType})
	}
	headers := map[string]string{}
	if contentType != "" {
		headers["Content-Type"] = contentType
	}
	return s.keys.presign(c.Context(), http.MethodPut, base, headers, at, life)
}

// spoilGrant applies the faults that only this answer can have. Those that need another slot change nothing where there is none.
func (s *Server) spoilGrant(c *call, g *slot, grant slotGrant) (slotGrant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.fault.Kind {
	case MissingURL:
		grant.address = ""
	case DoubleBumID:
		// Without content nobody knows whether the other answer ever arrived. An answer without a bumId mixes nothing up.
		other := s.findOtherSlot(func(o *slot) bool { return o != g && len(o.PUTs) > 0 })
		if other == nil || c.reading.PDF.BumID != "told" {
			return grant, nil
		}
		grant.bumID = other.BumID
		return grant, s.commitLines(journalLine{Time: c.now, Kind: kindSlotAmbiguous, BumID: g.BumID})
	case SharedAddress, RepeatedAddress:
		// A slot without content is no use: its address may never have reached anybody.
		other := s.findOtherSlot(func(o *slot) bool { return o != g && len(o.PUTs) > 0 })
		if other == nil {
			return grant, nil
		}
		at := c.now
		if c.fault.Kind == RepeatedAddress {
			at = other.RegisteredAt
		}
		var err error
		grant.address, err = s.slotAddress(c, other, at)
		return grant, err
	}
	return grant, nil
}

// findOtherSlot returns one of the slots that fit, or nil. The caller holds mu.
func (s *Server) findOtherSlot(fits func(*slot) bool) *slot {
	var others []*slot
	for _, g := range s.state.pdf.all {
		if fits(g) {
			others = append(others, g)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return others[s.rng.Uint64()%uint64(len(others))]
}

// storePDF handles a PUT to the address of a slot, as strictly as one to the address of a package.
func (s *Server) storePDF(c *call) reply {
	if d := s.checkPut(c); d != nil {
		return c.storeRefusal(d)
	}
	// The client is held to the time at which its call arrived. A call that a fault delays comes too late without its doing.
	if signedAt, d := s.verifyAddress(c, c.arrived); d == expired && c.mayKnowEnd(signedAt) {
		s.recordViolation(c, "PUT to slot %s after the end of its address", objectName(c.URL))
	}
	signedAt, d := s.verifyAddress(c, c.now)
	if d != nil {
		return c.storeRefusal(d)
	}
	g, d := s.findSlot(c, signedAt)
	if d == nil {
		d = s.checkHeaders(c)
	}
	if d != nil {
		return c.storeRefusal(d)
	}
	s.checkQuery(c, signedAt)
	if to := c.redirectTarget(); to != "" {
		return s.redirectPDF(c, to+c.URL.EscapedPath()+keyQuery(c.Request))
	}
	if c.fault.Kind == RedirectAway {
		if to := s.addressOfOtherSlot(c, g); to != "" {
			return s.redirectPDF(c, to)
		}
	}
	p, sum, d := s.receiveBody(c)
	if d == nil && c.fault.Kind != Vanish {
		d = s.keepPDF(c, g, p)
	}
	if d != nil {
		return c.storeRefusal(d)
	}
	return s.storedReply(c, sum)
}

// verifyAddress checks the address of a slot's object in either form. signedAt is when it was made.
func (s *Server) verifyAddress(c *call, now time.Time) (signedAt time.Time, d *denial) {
	if c.URL.Query().Has(signatureParameter) {
		return s.keys.verifySealed(c.Request, now)
	}
	return s.keys.verify(c.Request, now)
}

// untoldLife is how long a client may take an address for good that does not tell its end.
const untoldLife = 15 * time.Minute

// mayKnowEnd reports whether a client may know that an address is over which was made at a time: the address says so, or is older
// than any that a client may still take for good.
func (c *call) mayKnowEnd(signedAt time.Time) bool {
	return !c.URL.Query().Has(signatureParameter) || c.arrived.Sub(signedAt) > untoldLife
}

// findSlot finds the slot that the address belongs to.
func (s *Server) findSlot(c *call, signedAt time.Time) (*slot, *denial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.state.pdf.byID[strings.TrimSuffix(objectName(c.URL), ".pdf")]
	if g == nil {
		return nil, &denial{404, "NoSuchKey", "The specified key does not exist."}
	}
	c.record.BumIDs = []string{g.BumID}
	if g.isAmbiguous {
		s.recordViolationLocked(c, "PUT to slot %s, which was answered with the bumId of another slot", g.BumID)
	}
	if c.fault.Kind == DeadToken {
		if err := s.commitLines(journalLine{Time: c.now, Kind: kindSlotSpoiled, BumID: g.BumID}); err != nil {
			return nil, &denial{500, "InternalError", "We encountered an internal error. Please try again."}
		}
	}
	if !g.addressesRevokedAt.IsZero() && !signedAt.After(g.addressesRevokedAt) {
		return nil, &denial{403, "ExpiredToken", "The provided token has expired."}
	}
	return g, nil
}

// addressOfOtherSlot returns the address, not signed yet, of another slot that has content. It is empty when there is none.
func (s *Server) addressOfOtherSlot(c *call, g *slot) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	other := s.findOtherSlot(func(o *slot) bool { return o != g && len(o.PUTs) > 0 })
	if other == nil {
		return ""
	}
	return s.objectURL(c, "pdf", other.BumID+".pdf")
}

// redirectPDF redirects a PUT. The new address is good for one window from now.
func (s *Server) redirectPDF(c *call, to string) reply {
	u, err := s.signSlotAddress(c, to, c.now, s.cfg.PDF.Window)
	if err != nil {
		return c.storeRefusal(&denial{500, "InternalError", "We encountered an internal error. Please try again."})
	}
	return c.temporaryRedirect(u)
}

// keepPDF records the stored bytes for their slot, and a violation when the slot had other bytes before.
func (s *Server) keepPDF(c *call, g *slot, p storedPackage) *denial {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(g.PUTs, func(o StoredPDF) bool { return !o.IsTruncated && !p.isTruncated && o.SHA256 != p.sha256 }) {
		s.recordViolationLocked(c, "other bytes in slot %s", g.BumID)
	}
	// A kill before this line leaves an object that belongs to no slot, and a client without an answer.
	err := s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindSlotStored, BumID: g.BumID, SHA256: p.sha256, Size: p.size,
		Torn: p.isTruncated, Refused: c.fault.refusesStoredPackage(), Flow: len(g.PUTs) == 0 || c.reading.PDF.RepeatedPut == "second-flow"})
	if err != nil {
		return &denial{500, "InternalError", "We encountered an internal error. Please try again."}
	}
	return nil
}

// isAddress reports whether a text is an e-mail address and nothing beside it.
func isAddress(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Name == "" && a.Address == text && len(text) <= 254
}

// PDFReadings choose between the plausible meanings of what the specification of the PDF upload leaves open.
type PDFReadings struct {
	URLForm     string // where an answer has the address: uploadUrl | url | object (uploadUrl is an object with url)
	BumID       string // an answer tells the bumId: told | none
	Validity    string // an address says how long it is good: told | untold
	ContentType string // of a PUT: any | signed (the address is good for application/pdf alone)
	ErrorBody   string // specified (detail is a text, for 422 a list) or any word of Readings.ErrorBody
	RepeatedPut string // a further PUT to a slot: replace (its object, in the flow that has begun) | second-flow
}

func (r *PDFReadings) check() error {
	return errors.Join(
		checkWord("PDF.URLForm", &r.URLForm, "uploadUrl", "url", "object"),
		checkWord("PDF.BumID", &r.BumID, "told", "none"),
		checkWord("PDF.Validity", &r.Validity, "told", "untold"),
		checkWord("PDF.ContentType", &r.ContentType, "any", "signed"),
		checkWord("PDF.ErrorBody", &r.ErrorBody, append([]string{"specified"}, errorForms...)...),
		checkWord("PDF.RepeatedPut", &r.RepeatedPut, "replace", "second-flow"),
	)
}

// knowsReceiving reports whether an address is one of the known ones, in any case.
func knowsReceiving(known []string, address string) bool {
	return len(known) == 0 || slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, address) })
}
