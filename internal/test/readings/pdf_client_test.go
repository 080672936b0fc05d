package readings

import (
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/pdfapi"
	"vaultd/internal/test/kit"
)

const (
	pdfUser        = "vaultd-pdf-client"
	receiving      = "ap@in.example"
	pdfBody        = `{"receivingEmailAddress":"` + receiving + `","notificationEmailAddress":"clerk@acme.example"}`
	strangePDFBody = `{"receivingEmailAddress":"nobody@in.example","notificationEmailAddress":"clerk@acme.example"}`
)

// pdfSetup is how a PDF upload differs from the most likely reading. The zero value is that reading.
type pdfSetup struct {
	readings emulator.Readings
	service  func(*emulator.Config)
	client   func(*apicall.Config)
	path     string
	fault    emulator.Fault // of the second registration
	life     time.Duration  // that each ticket must have, at most two seconds less; 0: an hour
}

// pdfWorld is a service with the PDF upload in an account of its own, and the client. There is no daemon.
type pdfWorld struct {
	t       *testing.T
	service *emulator.Server
	client  *pdfapi.Client
}

// speakPDF runs f on virtual time.
func speakPDF(t *testing.T, s pdfSetup, f func(w *pdfWorld)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &pdfWorld{t: t}
		ec := emulator.Config{Dir: filepath.Join(t.TempDir(), "service"), StoreURL: func() string { return "https://" + storeHost + "/packages" },
			Username: user, Secret: "another secret", ClientID: user, ClientSecret: "another secret", Scopes: []string{"vault.write"},
			Vaults: []emulator.Vault{{ID: "ACME"}}, PDF: emulator.PDF{Account: emulator.Account{Name: pdfUser, Secret: password}, Receiving: []string{receiving}},
			Seed: 7, Readings: s.readings}
		ec.Faults.Hook = func(op string, n int) emulator.Fault {
			if op == "pdf-register" && n == 2 {
				return s.fault
			}
			return emulator.Fault{}
		}
		if s.service != nil {
			s.service(&ec)
		}
		var err error
		w.service, err = emulator.New(ec)
		kit.Must(w.t, err)
		defer func() { kit.Must(w.t, w.service.Close()) }()
		cc := apicall.Config{BaseURL: "https://" + apiHost, Transport: w.service.Transport(),
			Auth: apicall.Auth{Method: apicall.Basic, Username: pdfUser, Secret: func() (string, error) { return password, nil }}}
		if s.client != nil {
			s.client(&cc)
		}
		api, store, err := apicall.New(cc)
		kit.Must(w.t, err)
		boot := time.Now()
		w.client = pdfapi.New(pdfapi.Config{API: api, Store: store, Path: s.path, Now: func() archive.Instant {
			return archive.Instant{Wall: time.Now(), Boot: time.Since(boot) + time.Hour, BootID: "boot"}
		}})
		f(w)
	})
}

// register registers one document and returns its ticket. The error is the call's, or says that the address was refused.
func (w *pdfWorld) register(n byte, body string) (archive.Ticket, error) {
	w.t.Helper()
	id := archive.ID{n}
	got, err := w.client.Register(w.t.Context(), "", []archive.RegisterRequest{{ID: id, Metadata: []byte(body)}})
	if err != nil {
		return archive.Ticket{}, err
	}
	if why, barred := got.Barred[id]; barred {
		return archive.Ticket{}, fmt.Errorf("barred: %s", why)
	}
	return got.Tickets[id], nil
}

func (w *pdfWorld) mustRegister(n byte) archive.Ticket {
	w.t.Helper()
	ticket := kit.Value(w.register(n, pdfBody))(w.t)
	return ticket
}

func contentOf(n byte) string { return fmt.Sprintf("%%PDF-1.7 document %d\n%%%%EOF\n", n) }

// mustUpload uploads the n-th document.
func (w *pdfWorld) mustUpload(ticket archive.Ticket, n byte) {
	w.t.Helper()
	content := []byte(contentOf(n))
	path := filepath.Join(w.t.TempDir(), "scan.pdf")
	kit.Must(w.t, os.WriteFile(path, content, 0o600))
	sent, _, err := w.client.Upload(w.t.Context(), ticket, archive.Package{Path: path, Size: int64(len(content)), SHA256: archive.Sum(content), MD5: md5.Sum(content)})
	kit.Must(w.t, err)
	kit.Want(w.t, fmt.Sprintf("document %d: other bytes were sent", n), sent, archive.Sum(content))
}

// delivered demands that the slots hold these documents, each in one flow, and that nothing was done that must not be.
func (w *pdfWorld) delivered(documents ...byte) {
	w.t.Helper()
	var got, want []string
	for _, s := range w.service.PDFSlots() {
		for _, p := range s.PUTs {
			got = append(got, p.SHA256)
		}
		kit.Check(w.t, s.Flows == len(s.PUTs) && s.Flows <= 1, "slot %+v", s)
	}
	for _, n := range documents {
		want = append(want, archive.Sum([]byte(contentOf(n))).String())
	}
	kit.Want(w.t, "the service holds", got, want)
	v := w.service.Violations()
	kit.Check(w.t, len(v) <= 0, "violations: %q", v)
}

// Three documents reach the PDF flow under every reading: each in a slot of its own, under a number of its own, and with the life
// that its address tells, or a quarter of an hour where none is told.
func TestReading_I8_PDFUpload(t *testing.T) {
	pdf := func(r emulator.PDFReadings) emulator.Readings { return emulator.Readings{PDF: r} }
	const quarter = 15 * time.Minute
	kit.Rows(t, map[string]pdfSetup{
		"Specified":         {},
		"FieldURL":          {readings: pdf(emulator.PDFReadings{URLForm: "url"})},
		"ObjectWithURL":     {readings: pdf(emulator.PDFReadings{URLForm: "object"})},
		"NoBumID":           {readings: pdf(emulator.PDFReadings{BumID: "none"})},
		"NoBumIDUntold":     {readings: pdf(emulator.PDFReadings{BumID: "none", Validity: "untold"}), life: quarter},
		"Untold":            {readings: pdf(emulator.PDFReadings{Validity: "untold"}), life: quarter},
		"Signed":            {readings: pdf(emulator.PDFReadings{ContentType: "signed"})},
		"SignedUntold":      {readings: pdf(emulator.PDFReadings{ContentType: "signed", Validity: "untold"}), life: quarter},
		"All":               {readings: pdf(emulator.PDFReadings{URLForm: "object", BumID: "none", Validity: "untold", ContentType: "signed"}), life: quarter},
		"TenMinutes":        {service: func(c *emulator.Config) { c.PDF.Window = 10 * time.Minute }, life: 10 * time.Minute},
		"ADay":              {service: func(c *emulator.Config) { c.PDF.Window = 24 * time.Hour }},
		"KeyInQuery":        {readings: emulator.Readings{KeyInQuery: true}},
		"KeyInQueryNoBumID": {readings: emulator.Readings{KeyInQuery: true, PDF: emulator.PDFReadings{BumID: "none"}}},
		"KeyInQueryUntold":  {readings: emulator.Readings{KeyInQuery: true, PDF: emulator.PDFReadings{BumID: "none", Validity: "untold"}}, life: quarter},
		"CapitalBumID":      {readings: emulator.Readings{BumIDCase: "capital"}},
		"TwinFields":        {readings: emulator.Readings{TwinFields: true}},
		"RedirectSameHost":  {readings: emulator.Readings{RedirectTo: "same"}},
		"RedirectedPut":     {readings: emulator.Readings{StoreRedirectTo: "https://store-2.example"}},
		"RedirectedUntold":  {readings: emulator.Readings{StoreRedirectTo: "https://store-2.example", PDF: emulator.PDFReadings{Validity: "untold", ContentType: "signed"}}, life: quarter},
		"ETagOfKeys":        {readings: emulator.Readings{ETag: "kms"}},
		"NoETag":            {readings: emulator.Readings{ETag: "none", ContentMD5: "ignore"}},
		"SecondFlow":        {readings: pdf(emulator.PDFReadings{RepeatedPut: "second-flow"})},
		"OtherPath":         {path: "/v2/smartpdf/invoiceUpload", service: func(c *emulator.Config) { c.PDF.Path = "/v2/smartpdf/invoiceUpload" }},
		"Tokens": {client: func(c *apicall.Config) {
			c.Auth.Method, c.Auth.Scopes = apicall.OAuth2, []string{pdfapi.Scope}
		}, service: func(c *emulator.Config) { c.TokenLife = 30 * time.Second }},
	}, func(t *testing.T, s pdfSetup) {
		speakPDF(t, s, func(w *pdfWorld) {
			if s.life == 0 {
				s.life = time.Hour
			}
			numbers, objects := map[archive.RemoteID]bool{}, map[string]bool{}
			for n := range byte(3) {
				ticket := w.mustRegister(n)
				if life := ticket.Life(); life > s.life || life < s.life-2*time.Second {
					t.Errorf("document %d: its ticket is used for %v, want %v", n, life, s.life)
				}
				numbers[ticket.Remote], objects[ticket.URL.Object()] = true, true
				time.Sleep(ticket.Life() - time.Second) // the address works to its end
				w.mustUpload(ticket, n)
			}
			kit.Check(t, len(numbers) == 3 && len(objects) == 3, "numbers %v, objects %d", numbers, len(objects))
			w.delivered(0, 1, 2)
		})
	})
}

// The service refuses what the configuration says: that is told as a refusal of the request, with the address that is to blame
// where the answer has its name, in every form of an error.
func TestReading_I24_PDFUploadRefusesAnAddress(t *testing.T) {
	silent := []string{"empty", "html"} // these answers name nothing
	for _, form := range append([]string{"specified", "message", "Message", "detail", "detail-list", "error", "oauth", "service", "network", "wrapped", "xml"}, silent...) {
		t.Run(form, func(t *testing.T) {
			speakPDF(t, pdfSetup{readings: emulator.Readings{PDF: emulator.PDFReadings{ErrorBody: form}}}, func(w *pdfWorld) {
				_, err := w.register(1, strangePDFBody)
				e := apicall.AsError(err)
				kit.Need(t, err != nil && e.Outcome == apicall.Refused && e.Status == 422,
					"%v: %v, want an error, e.Outcome = apicall.Refused, e.Status = 422", e.Outcome, err)
				names := e.Field == "receivingEmailAddress" && strings.Contains(e.Error(), "receivingEmailAddress \"nobody@")
				kit.Check(t, names != slices.Contains(silent, form), "it names %q: %v", e.Field, err)
				w.mustUpload(w.mustRegister(2), 2) // the next one is not to blame
				w.delivered(2)
			})
		})
	}
}

// Credentials, rights and paths are not the document's fault, whatever status and form tell of them. Nothing was made.
func TestReading_I24_PDFUploadWithoutAccess(t *testing.T) {
	wrong := func(c *apicall.Config) {
		c.Auth.Secret = func() (string, error) { return "S3cr3t of last year, canary", nil }
	}
	tokens := func(scope string) func(*apicall.Config) {
		return func(c *apicall.Config) { c.Auth.Method, c.Auth.Scopes = apicall.OAuth2, []string{scope} }
	}
	type row struct {
		pdfSetup
		says   string
		denied bool
	}
	kit.Rows(t, map[string]row{
		"403":        {pdfSetup{client: wrong}, "invalid credentials", true},
		"401":        {pdfSetup{client: wrong, readings: emulator.Readings{BadCredentials: 401}}, "invalid credentials", true},
		"List":       {pdfSetup{client: wrong, readings: emulator.Readings{PDF: emulator.PDFReadings{ErrorBody: "detail-list"}}}, "invalid credentials", true},
		"OtherScope": {pdfSetup{client: tokens("vault.write")}, "vault.write", true},
		"WrongToken": {pdfSetup{client: func(c *apicall.Config) { tokens(pdfapi.Scope)(c); wrong(c) }}, "invalid_client", true},
		"OtherClient": {pdfSetup{client: func(c *apicall.Config) {
			c.Auth.Username = user
			c.Auth.Secret = func() (string, error) { return "another secret", nil }
		}}, "not authorized", true},
		"OtherPath": {pdfSetup{path: "/v2/smartpdf/invoiceUpload"}, "502", false},
	}, func(t *testing.T, row row) {
		speakPDF(t, row.pdfSetup, func(w *pdfWorld) {
			_, err := w.register(1, pdfBody)
			e := apicall.AsError(err)
			if err == nil || e.Outcome == apicall.Refused || e.Denied != row.denied || !strings.Contains(e.Error(), row.says) {
				t.Errorf("%v, denied %t: %v", e.Outcome, e.Denied, err)
			}
			kit.Check(t, !row.denied || e.Outcome == apicall.NotProcessed || e.Outcome == apicall.NotSent,
				"%v: a slot may have been made: %v", e.Outcome, err)
			w.delivered()
		})
	})
}

// An answer that gives the number or the address of another slot can be told from a good one: by the number, or by the object
// that the address leads to, in either form of the address. An answer without an address leaves it open what was made.
func TestReading_I8_PDFUploadMixedUp(t *testing.T) {
	for name, kind := range map[string]emulator.Kind{"Number": emulator.DoubleBumID, "Address": emulator.SharedAddress, "SameBytes": emulator.RepeatedAddress} {
		for _, validity := range []string{"told", "untold"} {
			for _, bumID := range []string{"told", "none"} {
				if kind == emulator.DoubleBumID && bumID == "none" {
					continue
				}
				t.Run(fmt.Sprintf("%s/Validity=%s/BumID=%s", name, validity, bumID), func(t *testing.T) {
					readings := emulator.Readings{PDF: emulator.PDFReadings{Validity: validity, BumID: bumID}}
					speakPDF(t, pdfSetup{readings: readings, fault: emulator.Fault{Kind: kind}}, func(w *pdfWorld) {
						first := w.mustRegister(1)
						w.mustUpload(first, 1)
						time.Sleep(time.Minute)
						second := w.mustRegister(2)
						sameNumber, sameObject := first.Remote == second.Remote, first.URL.Object() == second.URL.Object()
						if sameNumber != (kind == emulator.DoubleBumID || bumID == "none") || sameObject != (kind != emulator.DoubleBumID) {
							t.Errorf("same number %t, same object %t", sameNumber, sameObject)
						}
						w.delivered(1)
					})
				})
			}
		}
	}
	t.Run("NoAddress", func(t *testing.T) {
		speakPDF(t, pdfSetup{fault: emulator.Fault{Kind: emulator.MissingURL}}, func(w *pdfWorld) {
			w.mustRegister(1)
			_, err := w.register(2, pdfBody)
			if e := apicall.AsError(err); err == nil || e.Outcome != apicall.OutcomeUnknown {
				t.Errorf("%v: %v, want an error, e.Outcome = apicall.OutcomeUnknown", e.Outcome, err)
			}
			w.delivered()
		})
	})
}
