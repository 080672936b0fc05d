package emulator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one request that is being served, with its journal line.
type call struct {
	*http.Request
	operation
	arrived time.Time
	now     time.Time // when its work begins
	fault   Fault
	reading Readings
	vault   string // set by requireVault
	account string // whose credentials the call carried; empty: the main account
	record  journalLine
}

// reply is an answer before it is written: handlers return one, faults change it, writeReply writes it.
type reply struct {
	status int // 0: no answer at all, the connection dies
	header http.Header
	body   []byte
	file   string // a stored package to send instead of body

	// beforeLastByte is called when all bytes but the last were handed over, and before that one is. An error ends the answer there. Nil:
	// nobody wants to know.
	beforeLastByte func() error
}

type handler func(*Server, *call) reply

// Header is in every answer. A production vaultd refuses an answer that has it.
const Header = "X-Vaultd-Emulator"

// serveCall serves an operation: fault, redirect, credentials, work, journal, answer, in this order. The journal line is written
// before the answer, so what a client saw is in the journal even if the server dies on the next instruction.
func (s *Server) serveCall(o operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(Header, "vaultd emulate")
		c := s.beginCall(o, r)
		s.beginPace(c)
		defer s.endPace(c)
		markConnected(r.Context(), c.fault.Kind != Refuse)
		rep := reply{}
		if waitFor(r.Context(), c.fault.Delay) {
			c.now = s.cfg.Clock()
			rep = s.carryOut(c)
		}
		s.writeRecord(c, rep)
		linger := c.fault.DelayAfter
		if c.fault.Kind == Trickle {
			linger = 0 // spent between the pieces
		}
		if rep.status == 0 || !waitFor(r.Context(), linger) {
			panic(http.ErrAbortHandler)
		}
		s.writeReply(w, c, rep)
	}
}

func (s *Server) beginCall(o operation, r *http.Request) *call {
	n, f := s.nextFault(o.op, strings.ToLower(r.PathValue("bumId")))
	c := &call{Request: r, operation: o, arrived: s.cfg.Clock(), fault: f, reading: s.currentReadings()}
	id := r.Header.Get(s.cfg.RequestIDHeader)
	if id == "" {
		s.mu.Lock()
		id = s.drawHex(8)
		s.mu.Unlock()
	}
	c.record = journalLine{
		Kind: kindCall, Op: o.op, N: n, Method: r.Method, Path: r.URL.Path,
		RequestID: id[:min(len(id), 200)], Fault: f.journalLabel(),
	}
	return c
}

// carryOut carries the call out, unless its fault strikes before the work. A fault that strikes after the work changes the
// answer.
func (s *Server) carryOut(c *call) reply {
	if c.observe != nil && c.fault.Kind != Refuse && !c.observe(s, c) {
		return reply{}
	}
	if c.fault.strikesBeforeWork() {
		if c.fault.IsAfterBody {
			_, _ = io.Copy(io.Discard, c.Body) // what cannot be read of it does not matter: none of it is kept
		}
		return s.applyFault(c, reply{})
	}
	if c.fault.Kind == RevokeTokens && s.revokeTokens(c) != nil {
		return reply{}
	}
	if to := c.reading.RedirectTo; to != "" && c.isFirstHop() {
		return c.redirect(to)
	}
	if c.fault.Kind == Trickle && c.isUpload {
		c.Body = &slowBody{ReadCloser: c.Body, ctx: c.Context(), piece: max(c.ContentLength/8, 1), between: c.fault.DelayAfter / 8}
	}
	if (c.fault.Kind == CutRequest || c.fault.Kind == Early) && c.isUpload {
		c.Body = halfBody(c)
	}
	rep := s.answer(c)
	if rep.status == 0 {
		return rep
	}
	if c.reading.TwinFields && rep.status == 200 && rep.file == "" && rep.header.Get("Content-Type") == "application/json" {
		rep.body = addTwinFields(rep.body)
	}
	return s.applyFault(c, rep)
}

// answer does what the operation does, with valid credentials where it needs them.
func (s *Server) answer(c *call) reply {
	for _, name := range c.wants {
		if c.Header.Get(name) == "" {
			s.recordViolation(c, "headers dropped: the redirect to %s was followed without %s", c.Host, name)
			return c.refusal(http.StatusForbidden, "AccessDenied", "the header "+name+" is missing")
		}
	}
	if c.needsCredentials() {
		if rep, ok := s.authorize(c); !ok {
			return rep
		}
	}
	return c.serve(s, c)
}

// isFirstHop reports whether the call has followed no redirect yet. API cuts the prefix of one that has off its path.
func (c *call) isFirstHop() bool {
	return c.needsCredentials() && strings.HasPrefix(c.RequestURI, c.URL.EscapedPath())
}

func (c *call) redirect(to string) reply {
	if to == "same" {
		to = baseURL(c.Request)
	}
	return reply{status: c.reading.RedirectStatus,
		header: http.Header{"Location": {strings.TrimSuffix(to, "/") + movedPrefix + c.URL.RequestURI()}}}
}

// writeRecord writes the call's journal line. When the journal cannot be written no answer is sent: the server must not
// answer what it would not remember after a restart.
func (s *Server) writeRecord(c *call, rep reply) {
	c.record.Time, c.record.Status = s.cfg.Clock(), rep.status
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commitLines(c.record) != nil {
		panic(http.ErrAbortHandler)
	}
}

// applyFault returns the answer as the fault leaves it.
func (s *Server) applyFault(c *call, rep reply) reply {
	page := []byte("<!DOCTYPE html>\n<html><head><title>Gateway</title></head><body><h1>Please sign in</h1></body></html>\n")
	switch c.fault.Kind {
	case Abort, Refuse, CutRequest:
		return reply{}
	case Status:
		return s.errorReply(c)
	case Coded:
		return s.codedReply(c)
	case HTML:
		return reply{status: 200, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, body: page}
	case ErrorDocument:
		return reply{status: 200, header: http.Header{"Content-Type": {"application/xml"}},
			body: errorXML("InternalError", "We encountered an internal error. Please try again.", c.record.RequestID)}
	case Early:
		return reply{status: 200}
	case Garble:
		rep = rep.loadFile()
		for i := range rep.body {
			rep.body[i] ^= 0x55
		}
	case Truncate:
		rep = rep.loadFile()
		rep.body = rep.body[:len(rep.body)/2]
	case Empty:
		rep.body, rep.file = nil, ""
	case Cut, Trickle:
		rep = rep.loadFile()
	}
	return rep
}

// errorReply is the error answer of kind Status, in the form of the side that was called.
func (s *Server) errorReply(c *call) reply {
	code := c.fault.statusCode()
	rep := c.refusal(code, "ServiceFault", strings.ToLower(http.StatusText(code)))
	if isPresigned(c.Request) {
		rep = c.storeRefusal(&denial{code, storeCode(code), "the request could not be served"})
	}
	if d := c.fault.RetryAfter; c.fault.RetryAfterText != "" {
		rep.header.Set("Retry-After", c.fault.RetryAfterText)
	} else if d > 0 && c.fault.RetryAfterDate {
		rep.header.Set("Retry-After", c.now.Add(d).UTC().Format(http.TimeFormat))
	} else if d > 0 {
		rep.header.Set("Retry-After", strconv.Itoa(int(d.Round(time.Second).Seconds())))
	}
	return rep
}

// storeCode is the object store's error code for a status.
func storeCode(status int) string {
	switch status {
	case 400:
		return "InvalidRequest"
	case 403:
		return "AccessDenied"
	case 409:
		return "ConditionalRequestConflict"
	case 412:
		return "PreconditionFailed"
	case 429:
		return "TooManyRequests"
	case 503:
		return "SlowDown"
	}
	return "InternalError"
}

// loadFile reads the file of the answer into its body, where faults can change it.
func (rep reply) loadFile() reply {
	if rep.file == "" {
		rep.body = slices.Clone(rep.body)
		return rep
	}
	b, err := os.ReadFile(rep.file)
	if err != nil {
		return reply{}
	}
	rep.body, rep.file = b, ""
	return rep
}

// writeReply writes the answer. A fault may end or slow it in its middle.
func (s *Server) writeReply(w http.ResponseWriter, c *call, rep reply) {
	h := w.Header()
	for k, v := range rep.header {
		h[k] = v
	}
	h.Set("Date", s.cfg.Clock().UTC().Format(http.TimeFormat))
	if c.host == storeHost { // a store gives each call its own id
		h.Set("X-Amz-Request-Id", c.record.RequestID)
	} else {
		h.Set(s.cfg.RequestIDHeader, c.record.RequestID)
	}
	if rep.beforeLastByte != nil && c.record.Size > 0 {
		w = &lastByteWriter{ResponseWriter: w, left: c.record.Size, before: rep.beforeLastByte}
	}
	if rep.file != "" {
		sendFile(w, c, rep)
		return
	}
	blanks := int64(0)
	if c.fault.Kind == Huge {
		blanks = c.fault.paddingSize()
	}
	h.Set("Content-Length", strconv.FormatInt(blanks+int64(len(rep.body)), 10))
	if c.fault.Chunked {
		h.Del("Content-Length")
	}
	w.WriteHeader(rep.status)
	if writeBlanks(w, blanks) != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	switch c.fault.Kind {
	case Cut:
		_, _ = w.Write(rep.body[:len(rep.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Trickle:
		s.writeSlowly(w, c, rep.body)
	default:
		_, _ = w.Write(rep.body) // the client may be gone; nothing depends on it
	}
}

// lastByteWriter holds the last byte of an answer back until before has returned. So what before commits is remembered by the time at which
// a client can have the whole answer, and is never committed for a client that hung up in the middle of it.
type lastByteWriter struct {
	http.ResponseWriter
	left   int64 // bytes that are still to come
	before func() error
}

// Unwrap is for [http.ResponseController].
func (l *lastByteWriter) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func (l *lastByteWriter) Write(p []byte) (n int, err error) {
	if last := l.left - 1; last >= 0 && int64(len(p)) > last {
		if n, err = l.ResponseWriter.Write(p[:last]); err == nil {
			err = http.NewResponseController(l.ResponseWriter).Flush() // a client that is gone shows here
		}
		// A kill after this line and before the last byte leaves an answer that counts as sent and lacks one byte.
		if err == nil {
			err = l.before()
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		p = p[last:]
	}
	m, err := l.ResponseWriter.Write(p)
	l.left -= int64(n + m)
	return n + m, err
}

// writeBlanks writes n blanks, which a reader of JSON skips.
func writeBlanks(w io.Writer, n int64) error {
	piece := bytes.Repeat([]byte{' '}, int(min(n, 64<<10)))
	for ; n > 0; n -= int64(len(piece)) {
		if _, err := w.Write(piece[:min(n, int64(len(piece)))]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) writeSlowly(w http.ResponseWriter, c *call, body []byte) {
	step := max(len(body)/8, 1)
	for piece := range slices.Chunk(body, step) {
		if !waitFor(c.Context(), c.fault.DelayAfter/8) {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(piece)
		_ = http.NewResponseController(w).Flush()
	}
}

func sendFile(w http.ResponseWriter, c *call, rep reply) {
	f, err := os.Open(rep.file)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer f.Close()
	http.ServeContent(w, c.Request, "", time.Time{}, f)
}

// jsonReply answers v with a status of 200.
func jsonReply(v any) reply { return reply{status: 200, header: jsonHeader(), body: encodeJSON(v)} }

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// refusal is an error answer of the API, in the form that the readings ask for.
func (c *call) refusal(status int, code, message string) reply {
	form := c.reading.ErrorBody
	if c.of != nil {
		form = c.of.errorForm(c.reading)
	}
	return errorAnswer(form, status, code, message)
}

// errorForms are the words for the forms of an error answer.
var errorForms = []string{"message", "Message", "detail", "detail-list", "error", "oauth", "service", "network", "wrapped", "xml", "empty", "html"}

// errorAnswer is an error answer in the form of that word; "specified" is that of the PDF upload.
func errorAnswer(form string, status int, code, message string) reply {
	if form == "specified" && status == http.StatusUnprocessableEntity {
		form = "detail-list"
	}
	id := strconv.Itoa(status)
	item := map[string]any{"id": id, "type": "ERROR", "message": message, "code": code, "info": ""}
	rep := reply{status: status, header: jsonHeader()}
	switch form {
	case "message":
		rep.body = encodeJSON(map[string]any{"message": message})
	case "Message":
		rep.body = encodeJSON(map[string]any{"Message": message})
	case "detail", "specified":
		rep.body = encodeJSON(map[string]any{"detail": message})
	case "detail-list":
		rep.body = encodeJSON(map[string]any{"detail": []any{map[string]any{"loc": []any{"body", 0}, "msg": message, "type": code}}})
	case "error":
		rep.body = encodeJSON(map[string]any{"error": message})
	case "oauth":
		rep.body = encodeJSON(map[string]any{"error": code, "error_description": message})
	case "service":
		rep.body = encodeJSON(map[string]any{"requestId": id, "hasError": true,
			"errorMessages": []any{map[string]any{"type": "VALIDATION", "code": code, "message": message}}})
	case "network":
		rep.body = encodeJSON(map[string]any{"version": "1.0", "errors": item})
	case "wrapped":
		rep.body = encodeJSON(map[string]any{"error": item})
	case "xml":
		rep.header.Set("Content-Type", "application/xml")
		rep.body = errorXML(code, message, id)
	case "html":
		rep.header.Set("Content-Type", "text/html")
		rep.body = fmt.Appendf(nil, "<html><body><h1>%d %s</h1></body></html>\n", status, http.StatusText(status))
	}
	return rep
}

// readBody reads at most limit bytes; tooLong says that there were more, and an error that the client went away.
func readBody(r *http.Request, limit int64) (body []byte, tooLong bool, err error) {
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(r.Body, limit+1))
	return b.Bytes(), n > limit, err
}
