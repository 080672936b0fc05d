package emulator

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind says how a call fails. There is one exported name per kind, so that a test cannot name one that does not exist.
type Kind string

// The kinds. Those of the first group can strike before the call was carried out or, with Fault.IsAfterWork, after it. Those of
// the second group change an answer, so they come after the work. Those of the third group concern the ops that they name, where
// uploads are upload and pdf-upload, and the last one concerns the credentials.
const (
	None   Kind = ""
	Abort  Kind = "abort"  // the connection dies without an answer
	Status Kind = "status" // an error answer with Fault.Status (default 503) and perhaps Retry-After
	HTML   Kind = "html"   // 200 and a proxy's HTML page
	Refuse Kind = "refuse" // no connection at all through Transport (never done); elsewhere as Abort

	ErrorDocument Kind = "error-document" // 200 and an error document as object stores write them
	Coded         Kind = "coded"          // network ops: an error answer of the network with Fault.Code; without one, with one of those after which a call may be repeated

	Cut      Kind = "cut"      // the connection dies in the middle of the answer
	Garble   Kind = "garble"   // right status and length, body garbled
	Truncate Kind = "truncate" // the body ends half way, with a matching length
	Empty    Kind = "empty"    // the body is empty
	Huge     Kind = "huge"     // the answer is right and comes after Fault.PaddingSize blanks, which mean nothing
	Trickle  Kind = "trickle"  // the body (of uploads that of the request) passes in eight pieces over Fault.DelayAfter

	CutRequest    Kind = "cut-request"    // uploads: the connection dies when half of the body was read, which is handled as a body that ends there
	DeadToken     Kind = "dead-token"     // uploads: the URL's temporary credentials died early; it never works again
	Vanish        Kind = "vanish"         // uploads: answered with 200, but nothing is stored
	Early         Kind = "early"          // uploads: answered with 200 before the body is read, nothing is stored; with Fault.IsAfterWork: after half of it, which is handled as a body that ends there
	Rerun         Kind = "rerun"          // upload: stored; archiving fails, and a job that runs again archives it Fault.RerunAfter later
	MissingAnswer Kind = "missing-answer" // register: one document is left out of the answer
	MissingURL    Kind = "missing-url"    // register, pdf-register: one answer has no URL
	ExtraAnswer   Kind = "extra-answer"   // register: an answer for a clientUUID that nobody sent
	ForeignAnswer Kind = "foreign-answer" // register: one answer carries a clientUUID that nobody sent
	DoubleBumID   Kind = "double-bumid"   // register: two answers carry one bumId (a batch of one: the answer twice); pdf-register: the answer carries the bumId of another slot

	ShortPage       Kind = "short-page"       // index: the page ends after its first document, and its cursor is the one that was asked for; network-notices: it ends after its first notification
	EmptyPage       Kind = "empty-page"       // index: the page is empty, and its new cursor leads to the documents that it should have had; network-notices: the page is empty, and there are more
	RepeatPage      Kind = "repeat-page"      // index: the page is right, and its new cursor leads to the same page again; network-notices: the page before comes again
	CirclePage      Kind = "circle-page"      // index: the page is right, and its cursor leads back to the first page
	SharedAddress   Kind = "shared-address"   // register, pdf-register: one answer has the address of an object that another document has, signed anew
	RepeatedAddress Kind = "repeated-address" // register, pdf-register: the same, byte for byte as the other document got it
	RedirectAway    Kind = "redirect-away"    // uploads: sent on by 307 to the object of another document
	Unaskable       Kind = "unaskable"        // register: every question about one of these bumIds alone is answered with Fault.Status (default 502)

	WrongMore    Kind = "wrong-more"    // network-notices: hasMoreItems is the opposite of the truth
	SwapNotices  Kind = "swap-notices"  // network-notices: the page has its notifications in the opposite order
	RepeatNotice Kind = "repeat-notice" // network-notices: one notification of the page comes again, with an acknowledgementId of its own
	HideNotices  Kind = "hide-notices"  // network-notices: the page is empty, and says that there are no more
	ShowOldOnes  Kind = "show-old-ones" // network-notices: the page has one more, the last one that was acknowledged, with the acknowledgementId that it had

	RevokeTokens Kind = "revoke-tokens" // any op: every access token given until now is refused from this call on
)

var kinds = []Kind{None, Abort, Status, HTML, Refuse, Cut, Garble, Truncate, Empty, Huge, Trickle, CutRequest, DeadToken,
	Vanish, Rerun, Early, ErrorDocument, MissingAnswer, MissingURL, ExtraAnswer, ForeignAnswer, DoubleBumID,
	ShortPage, EmptyPage, RepeatPage, CirclePage, SharedAddress, RepeatedAddress, RedirectAway,
	Unaskable, RevokeTokens, Coded, WrongMore, SwapNotices, RepeatNotice, HideNotices, ShowOldOnes}

// Fault says how one call fails. Delays alone, with Kind None, make it late.
type Fault struct {
	Kind         Kind
	IsAfterBody  bool          // those that strike before the work: the request's body was read and thrown away before. Else none of it is read
	IsAfterWork  bool          // Abort, Status, HTML, ErrorDocument, Coded: the call was carried out before it failed; for Early see that kind
	Delay        time.Duration // before the call is carried out
	DelayAfter   time.Duration // between the work and the answer
	VisibleAfter time.Duration // what was registered or stored becomes visible so much later; network-send: one notification about the document is listed so much later
	RerunAfter   time.Duration // of kind Rerun: from the failure to the success; default an hour

	Status         int           // of kind Status, and of kind Unaskable; of kind Coded, in place of the usual status of the code
	Code           string        // of kind Coded, like Error.001.0010
	RetryAfter     time.Duration // sent when positive, rounded to seconds
	RetryAfterDate bool          // Retry-After as a date
	RetryAfterText string        // sent as it stands, in place of RetryAfter

	PaddingSize int64 // of kind Huge, in bytes; default 60,000,000
	Chunked     bool  // the answer does not tell its length
}

// Faults say which calls fail. The ops are register, upload, status, status-list, index, download, token, vaults, pdf-register,
// pdf-upload, extract-list, extract-files, extract-definition, extract-download, extract-fetch, extract-acknowledge, network-file, network-fetch-file,
// network-validation-file, network-send, network-fetch, network-notices, network-notify, network-acknowledge, network-directory, and unknown for paths
// that do not exist. "pdf-upload" is every call to the object store about the object of a slot, "extract-fetch" every one about a file of
// an extract, "upload" every other one. Any other pre-signed GET counts as "download".
type Faults struct {
	Rules     []Rule                       // tried in order, the first that fires is taken
	Hook      func(op string, n int) Fault // asked at the n-th call of op since New, from 1; a fault it gives goes before the rules'
	Questions map[string]Fault             // by bumId: the fault of every question about that bumId alone; it goes before all others
}

// Rule makes calls fail at random.
type Rule struct {
	Op    string  // empty: every op
	Rate  float64 // 0 to 1
	Fault Fault
}

// ParseRule reads "op:kind:rate", as in "upload:abort:0.1" or "*:status:0.05"; "abort-done" is the form that fails
// after the work, "abort-read" the one that fails once the body was read, a number ("register:429:0.2") is an error answer with that status and a
// Retry-After of 2 s, a code of the network ("network-send:Error.001.0010:0.1") is an error answer with that code, and
// "late" waits five seconds before and after the work.
func ParseRule(text string) (Rule, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return Rule{}, fmt.Errorf("fault rule %q is not op:kind:rate", text)
	}
	rate, err := strconv.ParseFloat(parts[2], 64)
	if err != nil {
		return Rule{}, fmt.Errorf("fault rule %q: rate %q is no number", text, parts[2])
	}
	r := Rule{Op: strings.TrimPrefix(parts[0], "*"), Rate: rate}
	word, done := strings.CutSuffix(parts[1], "-done")
	word, read := strings.CutSuffix(word, "-read")
	r.Fault = Fault{Kind: Kind(word), IsAfterWork: done, IsAfterBody: read}
	if code, err := strconv.Atoi(word); err == nil {
		r.Fault = Fault{Kind: Status, Status: code, IsAfterBody: read, IsAfterWork: done, RetryAfter: 2 * time.Second}
	} else if slices.Contains(networkCodes(), word) {
		r.Fault = Fault{Kind: Coded, Code: word, IsAfterBody: read, IsAfterWork: done}
	} else if word == "late" {
		r.Fault = Fault{Delay: 5 * time.Second, DelayAfter: 5 * time.Second}
	}
	return r, r.check()
}

func (r Rule) check() error {
	ops := operationNames()
	switch {
	case r.Op != "" && !slices.Contains(ops, r.Op):
		return fmt.Errorf("fault rule: op %q is none of %q", r.Op, ops)
	case !(r.Rate >= 0 && r.Rate <= 1):
		return fmt.Errorf("fault rule: rate %v is not between 0 and 1", r.Rate)
	case r.Fault.IsAfterBody && !r.Fault.strikesBeforeWork():
		return fmt.Errorf("fault rule: kind %q does not strike before the work, so no body can be thrown away", r.Fault.Kind)
	case !slices.Contains(kinds, r.Fault.Kind):
		return fmt.Errorf("fault rule: kind %q is none of %q", r.Fault.Kind, kinds[1:])
	case r.Fault.Kind == Coded && !strings.HasPrefix(r.Op, "network-"):
		return fmt.Errorf("fault rule: kind %q is for the ops of the network", Coded)
	case r.Fault.Code != "" && !slices.Contains(networkCodes(), r.Fault.Code):
		return fmt.Errorf("fault rule: code %q is none of %q", r.Fault.Code, networkCodes())
	case r.Fault.Status != 0 && (r.Fault.Status < 300 || r.Fault.Status > 599):
		return fmt.Errorf("fault rule: status %d is no error answer", r.Fault.Status)
	}
	return nil
}

func (f Faults) check() error {
	var errs []error
	for _, r := range f.Rules {
		errs = append(errs, r.check())
	}
	return errors.Join(errs...)
}

// nextFault counts the call and returns its fault. The hook runs without the lock, so it may ask the server.
func (s *Server) nextFault(op, bumID string) (n int, f Fault) {
	s.mu.Lock()
	s.callCounts[op]++
	n = s.callCounts[op]
	hook := s.faults.Hook
	about, chosen := s.faults.Questions[bumID]
	for _, r := range s.faults.Rules {
		if (r.Op == "" || r.Op == op) && s.drawChance() < r.Rate {
			f = r.Fault
			break
		}
	}
	s.mu.Unlock()
	if hook != nil {
		if h := hook(op, n); h != (Fault{}) {
			f = h
		}
	}
	if chosen && op == "status" {
		f = about
	}
	if !slices.Contains(kinds, f.Kind) {
		panic(fmt.Sprintf("emulator: fault hook gave the unknown kind %q", f.Kind))
	}
	return n, f
}

// drawChance draws from [0,1). The caller holds mu.
func (s *Server) drawChance() float64 { return float64(s.rng.Uint64()>>11) / (1 << 53) }

// drawDuration draws a duration between the two, ends included. The caller holds mu.
func (s *Server) drawDuration(from, to time.Duration) time.Duration {
	return from + time.Duration(s.drawChance()*float64(to-from+1))
}

// drawHex draws n random bytes as hex digits. The caller holds mu.
func (s *Server) drawHex(n int) string {
	var b []byte
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, s.rng.Uint64())
	}
	return fmt.Sprintf("%x", b[:n])
}

// strikesBeforeWork reports whether the fault strikes instead of the work.
func (f Fault) strikesBeforeWork() bool {
	switch f.Kind {
	case Abort, Status, HTML, ErrorDocument, Early, Coded:
		return !f.IsAfterWork
	case Refuse:
		return true
	}
	return false
}

// leavesAnswerWhole reports whether the client gets all of the answer.
func (f Fault) leavesAnswerWhole() bool {
	switch f.Kind {
	case Abort, Status, HTML, Refuse, ErrorDocument, Coded, Cut, Garble, Truncate, Empty, CutRequest, Early:
		return false
	}
	return true
}

// journalLabel names the fault in the journal.
func (f Fault) journalLabel() string {
	name := string(f.Kind)
	if f.Kind == Status {
		name += "-" + strconv.Itoa(f.statusCode())
	}
	if f.Code != "" {
		name += "-" + f.Code
	}
	if f.IsAfterBody {
		name += "-read"
	}
	if f.IsAfterWork {
		name += "-done"
	}
	if f.Delay > 0 || f.DelayAfter > 0 {
		name = strings.TrimPrefix(name+"+late", "+")
	}
	if f.VisibleAfter > 0 {
		name = strings.TrimPrefix(name+"+lag", "+")
	}
	return name
}

// refusesStoredPackage reports whether the store keeps the package and answers that it refuses it.
func (f Fault) refusesStoredPackage() bool {
	return f.Kind == Status && f.IsAfterWork && f.statusCode() >= 400 && f.statusCode() < 500 && f.statusCode() != 429
}

// rerunDelay returns how long after its failure a package is archived; zero: it does not fail in this way.
func (f Fault) rerunDelay() time.Duration {
	switch {
	case f.Kind != Rerun:
		return 0
	case f.RerunAfter <= 0:
		return time.Hour
	}
	return f.RerunAfter
}

func (f Fault) statusCode() int {
	switch {
	case f.Status != 0:
		return f.Status
	case f.Kind == Unaskable:
		return 502
	}
	return 503
}

func (f Fault) paddingSize() int64 {
	if f.PaddingSize == 0 {
		return 60_000_000
	}
	return f.PaddingSize
}

// slowBody passes a request's body in pieces, with a pause before each.
type slowBody struct {
	io.ReadCloser
	ctx         context.Context
	piece, left int64
	between     time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		if !waitFor(b.ctx, b.between) {
			return 0, b.ctx.Err()
		}
		b.left = b.piece
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// halfBody returns a body that ends in an error after half of the announced bytes, as when a connection dies.
func halfBody(c *call) io.ReadCloser {
	half := io.LimitReader(c.Body, max(c.ContentLength/2, 0))
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(half, brokenReader{}), c.Body}
}

// waitFor waits. It returns false when the caller went away.
func waitFor(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
