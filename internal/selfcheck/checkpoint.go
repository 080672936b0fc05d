package selfcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
)

// The checkpoint is a file in the state directory with one line of JSON: what a
// verification found, and the SHA-256 of that. It is derived from the ledger
// and is never a source of truth: where it is missing, damaged, of another
// ledger, program or past, the whole ledger is read, and people are told so.

const (
	// CheckpointName is the name of the file in the state directory.
	CheckpointName = "verify.checkpoint"

	checkpointForm = 4
	mostCheckpoint = 64 << 20 // bytes of one that is read
)

// checkpoint is what a verification without a finding leaves for the next one.
type checkpoint struct {
	title
	At      time.Time           `json:"at"`     // of the verification: when it began
	Whole   time.Time           `json:"whole"`  // when the whole ledger was read last
	ToLine  uint64              `json:"toLine"` // of the journal, then
	Records boltledger.Verified `json:"records"`
	Sums    proof.Sums          `json:"sums"`
}

// title says what a checkpoint is of. All of it must be as expected before the rest is used.
type title struct {
	Form    int    `json:"form"`
	Ledger  string `json:"ledger"`
	Epoch   uint64 `json:"epoch"`
	Schema  int    `json:"schema"`
	Program string `json:"program"`
	Rules   string `json:"rules"`
}

// digested is the form of the file.
type digested struct {
	SHA256 string          `json:"sha256"` // of the bytes of what was found
	Found  json.RawMessage `json:"found"`
}

func (o Verification) titleOf(l *boltledger.Ledger) title {
	info := l.Info()
	return title{checkpointForm, info.ID, info.Epoch, info.Schema, o.Program, proof.Rules()}
}

// writeCheckpoint writes the checkpoint of a verification. A crash leaves the
// former file or the new one, whole.
func (o Verification) writeCheckpoint(ctx context.Context, c checkpoint) error {
	if err := context.Cause(ctx); err != nil || o.StateDir == "" {
		return err
	}
	found, err := json.Marshal(c)
	if err == nil {
		found, err = json.Marshal(digested{archive.Sum(found).String(), found})
	}
	if err != nil {
		return fmt.Errorf("encode checkpoint: %w", err)
	}
	dir, err := durable.Open(o.StateDir, nil)
	if err != nil {
		return err
	}
	defer dir.Close() // read-only
	f, err := dir.Create(CheckpointName, 0o600)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(append(found, '\n')); err != nil {
		return err
	}
	// A crash before this leaves the former checkpoint, and a file that the next one replaces.
	return f.Commit()
}

// readCheckpoint reads the checkpoint of this ledger; nil: there is none, or
// the error says why it says nothing of this ledger.
func (o Verification) readCheckpoint(l *boltledger.Ledger) (*checkpoint, error) {
	if o.StateDir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(o.StateDir)
	if err != nil {
		return nil, err
	}
	defer root.Close() // read-only
	f, info, err := durable.OpenRegular(root, CheckpointName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	defer f.Close() // read-only
	if info.Size() > mostCheckpoint {
		return nil, fmt.Errorf("it has %d bytes, which is none of ours", info.Size())
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	var d digested
	c := &checkpoint{}
	if err := json.Unmarshal(text, &d); err != nil || d.SHA256 != archive.Sum(d.Found).String() {
		return nil, errors.New("it is damaged: its SHA-256 is not the one that it states")
	}
	if err := json.Unmarshal(d.Found, c); err != nil {
		return nil, fmt.Errorf("it cannot be decoded: %w", err)
	}
	if want := l.Info().ID; c.Ledger != want {
		return nil, fmt.Errorf("it is of another ledger, %q", c.Ledger)
	}
	return c, nil
}

// checkUse says why the checkpoint of a ledger cannot be gone on from; nil: it can.
func (o Verification) checkUse(l *boltledger.Ledger, c *checkpoint) error {
	age := o.Now().Sub(c.Whole)
	switch {
	case c.title != o.titleOf(l):
		return errors.New("it is of another version of the program or of the ledger")
	case age < 0 || age > maxAge:
		return fmt.Errorf("the whole ledger was read at %s last, and must be once in %d days", c.Whole.UTC().Format(time.RFC3339), maxAge/(24*time.Hour))
	}
	return nil
}
