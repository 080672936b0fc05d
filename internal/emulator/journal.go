package emulator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// journalLine is one line of the journal. Calls and violations are for readers; the other kinds are the server's whole
// memory. It never holds a query, a secret or the content of a package.
type journalLine struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`

	Op          string   `json:"op,omitempty"`
	N           int      `json:"n,omitempty"` // counts the calls of its op since New
	Method      string   `json:"method,omitempty"`
	Path        string   `json:"path,omitempty"`
	RequestID   string   `json:"requestId,omitempty"`
	Fault       string   `json:"fault,omitempty"`
	Status      int      `json:"status,omitempty"` // absent: the connection died
	ClientUUIDs []string `json:"clientUUIDs,omitempty"`
	BumIDs      []string `json:"bumIds,omitempty"`

	Vault      string          `json:"vault,omitempty"`
	ClientUUID string          `json:"clientUUID,omitempty"`
	BumID      string          `json:"bumId,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Digest     string          `json:"metadataSHA256,omitempty"` // of the element's bytes as they were sent
	Visible    *time.Time      `json:"visible,omitempty"`        // not before this instant, when later than Time
	Window     time.Duration   `json:"window,omitempty"`         // nanoseconds
	SHA256     string          `json:"sha256,omitempty"`
	Size       int64           `json:"size,omitempty"`
	Ripens     time.Duration   `json:"ripens,omitempty"` // nanoseconds from upload to the final state
	Torn       bool            `json:"torn,omitempty"`   // the stored body ended early
	Fate       string          `json:"fate,omitempty"`   // why archiving will fail; empty: it will not
	Text       string          `json:"text,omitempty"`
	Again      time.Duration   `json:"again,omitempty"`   // nanoseconds from a first failure to the success of a job that runs again
	Refused    bool            `json:"refused,omitempty"` // stored, and answered as a refusal
	Flow       bool            `json:"flow,omitempty"`    // a PDF flow begins with what was stored
	PDF        *slotAddressees `json:"pdf,omitempty"`
	Extract    *extractLine    `json:"extract,omitempty"`
	Network    *networkLine    `json:"network,omitempty"`
}

const (
	kindCall       = "call"
	kindViolation  = "violation"
	kindRegistered = "registered"
	kindReissued   = "reissued" // a fresh URL for a known bumId
	kindStored     = "stored"
	kindSpoiled    = "spoiled"   // the credentials behind the URLs of a bumId died
	kindPoisoned   = "poisoned"  // a faulty answer made it unclear whose the bumId is; nobody may use it
	kindShared     = "shared"    // a faulty answer gave the address of a bumId to another document; that one may not use it
	kindUnaskable  = "unaskable" // from now on a question about this bumId alone is answered with Status
	kindRevoked    = "revoked"   // the access tokens given until now are refused
)

// journal is the append-only file. Each append is one write. A kill leaves whole lines, or at worst one partial last line. The
// next openJournal cuts that off: no answer was sent for it.
type journal struct {
	file   *os.File
	failed error // the first failed write: later lines must not be appended to a partial one
}

func openJournal(path string, replay func(journalLine)) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	// Two servers on one directory would each know half of the facts. The kernel releases the lock when a server is killed.
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another emulator uses the directory: %w", err), f.Close())
	}
	whole, err := replayLines(f, replay)
	if err == nil {
		err = f.Truncate(whole)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &journal{file: f}, nil
}

// replayLines calls replay for each whole line, and returns their length.
func replayLines(r io.Reader, replay func(journalLine)) (whole int64, err error) {
	in := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		raw, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		var l journalLine
		if err := json.Unmarshal(raw, &l); err != nil {
			return whole, fmt.Errorf("line %d: %w", n, err)
		}
		replay(l)
		whole += int64(len(raw))
	}
}

func (j *journal) writeLines(lines []journalLine) error {
	var b bytes.Buffer
	for _, l := range lines {
		b.Write(encodeJSON(l))
		b.WriteByte('\n')
	}
	if j.failed == nil {
		_, j.failed = j.file.Write(b.Bytes())
	}
	return j.failed
}

func (j *journal) close() error { return j.file.Close() }

// commitLines writes the lines, all or none, then applies them to the memory. The caller holds mu.
func (s *Server) commitLines(lines ...journalLine) error {
	// The journal comes first: a kill before the memory changed is the same as one after it.
	if err := s.journal.writeLines(lines); err != nil {
		return fmt.Errorf("write emulator journal: %w", err)
	}
	for _, l := range lines {
		s.state.applyLine(l)
	}
	return nil
}

// recordViolation records what a correct client would not have done.
func (s *Server) recordViolation(c *call, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordViolationLocked(c, format, args...)
}

// recordViolationLocked is recordViolation for a caller that holds mu. It ignores a journal that cannot be written, because
// writeRecord then sends no answer.
func (s *Server) recordViolationLocked(c *call, format string, args ...any) {
	_ = s.commitLines(journalLine{Time: c.now, Kind: kindViolation, RequestID: c.record.RequestID, Text: fmt.Sprintf(format, args...)})
}

// encodeJSON returns JSON without a trailing newline. It panics on a value that has none, which does not occur here.
func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("emulator: encode %T: %v", v, err))
	}
	return b
}
