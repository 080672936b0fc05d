package emulator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Extracts describes the data extracts of the accounts-payable system. Its zero value is a service that the main account may use.
// [Server.PublishExtract] makes extracts.
type Extracts struct {
	Account               Account // that alone may use it; zero: the main one
	ReadScope, WriteScope string  // that a bearer token needs, default dataExtract.read and dataExtract.write
	FilesURL              string  // base address of the host that has the files in the reading redirect-auth; empty: the host of the call
}

func (e *Extracts) setDefaults() {
	setDefault(&e.ReadScope, "dataExtract.read")
	setDefault(&e.WriteScope, "dataExtract.write")
}

const (
	maxExtractDownloads = 50 // of one file
	maxFilesAtOnce      = 2  // more downloads at once are a violation
)

// extractService is the interface of the extracts, for calls that need a scope.
func (c *Config) extractService(scope string) *service {
	scopes := []string{c.Extracts.ReadScope, c.Extracts.WriteScope}
	if c.Extracts.Account == (Account{}) {
		scopes = c.Scopes
	}
	return &service{accounts: []Account{c.Extracts.Account}, scopes: scopes, requireScope: scope,
		errorForm: func(r Readings) string { return r.ErrorBody }}
}

// extractFileService is where the files of extracts are fetched from.
func (c *Config) extractFileService() *service {
	s := c.extractService(c.Extracts.ReadScope)
	s.mostAtOnce = maxFilesAtOnce
	return s
}

// ExtractReadings choose between the plausible meanings of what the specification of the extracts leaves open.
type ExtractReadings struct {
	Times       string // how times are written: slash (28/03/2024, 10:17:02) | rfc3339
	List        string // the list is: bare | wrapped (in a field of an object) | parts (each answer has one extract, and a token for the next)
	Download    string // the address of a file answers with: redirect (to a pre-signed address) | bytes | redirect-auth (to Extracts.FilesURL, where Authorization and Date must come again)
	Acknowledge string // the path of an acknowledgement: plural | singular | both
	Exported    string // what makes an extract exported: acknowledge | download
	Definition  string // the table definition: list | none (404) | page (of a web server) | other (JSON of another form)
}

func (r *ExtractReadings) check() error {
	return errors.Join(
		checkWord("Extracts.Times", &r.Times, "slash", "rfc3339"),
		checkWord("Extracts.List", &r.List, "bare", "wrapped", "parts"),
		checkWord("Extracts.Download", &r.Download, "redirect", "bytes", "redirect-auth"),
		checkWord("Extracts.Acknowledge", &r.Acknowledge, "plural", "singular", "both"),
		checkWord("Extracts.Exported", &r.Exported, "acknowledge", "download"),
		checkWord("Extracts.Definition", &r.Definition, "list", "none", "page", "other"),
	)
}

// checkDate records a call that does not tell its time. Every call and every hop of a redirect has to carry Date.
func (s *Server) checkDate(c *call) {
	if _, err := http.ParseTime(c.Header.Get("Date")); err != nil {
		s.recordViolation(c, "%s without a Date header", c.op)
	}
}

// formatTime writes a time in the form of the readings; a time that is not told is null.
func (c *call) formatTime(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case c.reading.Extracts.Times == "rfc3339":
		return t.UTC().Format(time.RFC3339)
	}
	return t.UTC().Format("02/01/2006, 15:04:05")
}

// listExtracts answers with all extracts that nobody acknowledged and whose
// year is not over, or with those that somebody did.
func (s *Server) listExtracts(c *call) reply {
	s.checkDate(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for _, e := range s.state.extracts.listed(c.now, c.URL.Query().Get("processingStatus") == "Exported") {
		items = append(items, map[string]any{
			"id": e.ID, "type": e.Type, "startDate": c.formatTime(e.Start), "endDate": c.formatTime(e.End), "fileCount": e.toldFiles(),
			"processingStatus": e.status(c), "extractDate": c.formatTime(e.Made), "extractName": e.Name,
		})
	}
	switch c.reading.Extracts.List {
	case "wrapped":
		return jsonReply(map[string]any{"dataExtracts": items})
	case "parts":
		return partOfList(c, items)
	}
	return jsonReply(items)
}

const continuationHeader = "X-Amz-Meta-Continuationtoken"

// partOfList answers with one item of the list, and with the token of the next one.
func partOfList(c *call, items []any) reply {
	at, _ := strconv.Atoi(c.Header.Get(continuationHeader)) // the first call has none
	if at < 0 || at >= len(items) {
		return jsonReply([]any{})
	}
	rep := jsonReply(items[at : at+1])
	if at+1 < len(items) {
		rep.header.Set(continuationHeader, strconv.Itoa(at+1))
	}
	return rep
}

// findExtract returns the extract that a call is about; nil: there is none any more.
func (s *Server) findExtract(c *call) *extract {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.state.extracts.byID[c.PathValue("extract")]; e != nil && !e.isOver(c.now) {
		return e
	}
	return nil
}

func (c *call) noExtract() reply {
	return c.refusal(http.StatusNotFound, "NOT_FOUND", "no extract with this id")
}

// listExtractFiles answers with the files of an extract.
func (s *Server) listExtractFiles(c *call) reply {
	s.checkDate(c)
	e := s.findExtract(c)
	if e == nil {
		return c.noExtract()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for i, f := range e.Files {
		items = append(items, map[string]any{
			"extractId": e.ID, "tableName": f.Table, "fileName": f.Name, "startDate": c.formatTime(e.Start), "endDate": c.formatTime(e.End),
			"downloadUrl": fmt.Sprintf("%s/v1/dataExtracts/%s/files/%d", baseURL(c.Request), e.ID, i),
		})
	}
	return jsonReply(items)
}

// downloadExtractFile counts a download and answers with the file or its address. The 51st is refused.
func (s *Server) downloadExtractFile(c *call) reply {
	s.checkDate(c)
	e := s.findExtract(c)
	number, err := strconv.Atoi(c.PathValue("number"))
	if e == nil || err != nil {
		return c.noExtract()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 0 || number >= len(e.Files) {
		return c.noExtract()
	}
	f := &e.Files[number]
	if f.Downloads >= maxExtractDownloads {
		return c.refusal(http.StatusForbidden, "LIMIT", "the file was downloaded 50 times")
	}
	// A kill after this line and before the answer leaves a download that counts and that nobody got.
	if err := s.commitLines(journalLine{Time: c.now, Kind: kindExtractDownload, Extract: &extractLine{ID: e.ID, Number: number}}); err != nil {
		return reply{}
	}
	switch c.reading.Extracts.Download {
	case "bytes":
		return s.extractFileReply(c, e, number)
	case "redirect-auth":
		to := strings.TrimSuffix(cmp.Or(s.cfg.Extracts.FilesURL, baseURL(c.Request)), "/")
		return reply{status: http.StatusFound, header: http.Header{"Location": {fmt.Sprintf("%s%s/%s/%d", to, guardedFiles, e.ID, number)}}}
	}
	u, err := s.keys.presign(c.Context(), http.MethodGet, s.objectURL(c, "extracts", fmt.Sprintf("%s.%d.extract", e.ID, number)), nil, c.now, s.cfg.Window)
	if err != nil {
		return c.refusal(http.StatusInternalServerError, "INTERNAL", "no download address")
	}
	return reply{status: http.StatusFound, header: http.Header{"Location": {u}}}
}

// fetchExtractFile handles a GET of the pre-signed address of a file.
func (s *Server) fetchExtractFile(c *call) reply {
	if c.Header.Get("Authorization") != "" {
		s.recordViolation(c, "Authorization header on a pre-signed GET")
		return c.storeRefusal(&denial{400, "InvalidArgument", "Only one auth mechanism allowed"})
	}
	if _, d := s.keys.verify(c.Request, c.now); d != nil {
		return c.storeRefusal(d)
	}
	stem := strings.TrimSuffix(objectName(c.URL), ".extract")
	at := strings.LastIndexByte(stem, '.')
	number, err := strconv.Atoi(stem[at+1:])
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.state.extracts.byID[stem[:max(at, 0)]]
	if e == nil || err != nil || number < 0 || number >= len(e.Files) {
		return c.storeRefusal(&denial{404, "NoSuchKey", "The specified key does not exist."})
	}
	return s.extractFileReply(c, e, number)
}

// guardedFiles is the path of the files at a host that wants the headers of the first call again.
const guardedFiles = "/v1/dataExtractFiles"

// fetchGuardedFile handles the GET of a file at that host.
func (s *Server) fetchGuardedFile(c *call) reply {
	e := s.findExtract(c)
	number, err := strconv.Atoi(c.PathValue("number"))
	if e == nil || err != nil {
		return c.noExtract()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 0 || number >= len(e.Files) {
		return c.noExtract()
	}
	return s.extractFileReply(c, e, number)
}

// extractFileReply answers with a file. The file counts as sent once all its bytes but the last were handed over. What a fault cuts short never
// gets so far. The caller holds mu.
func (s *Server) extractFileReply(c *call, e *extract, number int) reply {
	f := e.Files[number]
	c.record.SHA256, c.record.Size = f.SHA256, f.Size
	rep := reply{status: 200, header: http.Header{"Content-Type": {"application/octet-stream"}}, file: s.objectPath(f.SHA256)}
	if c.fault.Kind != Garble { // as many bytes, and others
		rep.beforeLastByte = func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindExtractSent, Extract: &extractLine{ID: e.ID, Number: number}})
		}
	}
	return rep
}

// acknowledgeExtract marks an extract as taken and hides it from the list. To say so before every file was sent is a violation: what is
// lost then cannot be found in any list again.
func (s *Server) acknowledgeExtract(c *call) reply {
	s.checkDate(c)
	form := "plural"
	if strings.HasPrefix(c.URL.Path, "/v1/dataExtract/") {
		form = "singular"
	}
	e := s.findExtract(c)
	if reading := c.reading.Extracts.Acknowledge; e == nil || reading != "both" && reading != form {
		return c.noExtract()
	}
	body, tooLong, err := readBody(c.Request, maxSlotBody)
	if err != nil {
		return reply{} // the client went away in the middle: there is nobody to answer
	}
	var said struct {
		Succeeded *bool  `json:"succeeded"`
		Message   string `json:"message"`
	}
	if tooLong || json.Unmarshal(body, &said) != nil || said.Succeeded == nil {
		return c.refusal(http.StatusBadRequest, "VALIDATION", "the body must have succeeded and message")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !*said.Succeeded {
		s.recordViolationLocked(c, "extract %s was acknowledged as failed", e.ID)
	}
	if i := slices.IndexFunc(e.Files, func(f ExtractFile) bool { return !f.WasSent }); i >= 0 {
		s.recordViolationLocked(c, "extract %s was acknowledged before its file %q was sent", e.ID, e.Files[i].Name)
	}
	if e.IsAcknowledged {
		return c.refusal(http.StatusMethodNotAllowed, "DONE", "the extract is acknowledged already")
	}
	if err := s.commitLines(journalLine{Time: c.now, Kind: kindExtractAcknowledged, Extract: &extractLine{ID: e.ID}}); err != nil {
		return reply{}
	}
	return jsonReply(map[string]any{"succeeded": true, "message": said.Message})
}

// tellDefinition answers with the table definition.
func (s *Server) tellDefinition(c *call) reply {
	s.checkDate(c)
	switch c.reading.Extracts.Definition {
	case "none":
		return c.refusal(404, "NotFound", "There is no table definition.")
	case "page":
		return reply{status: 200, header: http.Header{"Content-Type": {"text/html"}}, body: []byte("<html>tables</html>")}
	case "other":
		return jsonReply(map[string]any{"IA_INVOICE": []string{"INVOICE_ID", "INVOICE_NUM"}})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return reply{status: 200, header: jsonHeader(), body: slices.Clone(s.state.extracts.definition)}
}
