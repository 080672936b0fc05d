package selfcheck

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
)

// The checkpoint is a file in the state directory: a line with the SHA-256 of all that follows, a line of JSON that says which
// verification it is of, and what that found in the form of encoding/gob. It is derived from the ledger and is never a source of
// truth: where it is missing, damaged, of another ledger, program or past, the whole ledger is read, and people are told so.

const (
	// CheckpointName is the name of the file in the state directory.
	CheckpointName = "verify.checkpoint"

	checkpointForm = 2
	mostCheckpoint = 256 << 20 // bytes of one that is read
)

// checkpoint is what a verification without a finding leaves for the next one.
type checkpoint struct {
	At      time.Time // of the verification: when it began
	Whole   time.Time // when the whole ledger was read last
	ToLine  uint64    // of the journal, then
	Records boltledger.Verified
	Replay  proof.State
}

// title is the readable part of a checkpoint. All of it must be as expected before the rest is read.
type title struct {
	Form    int       `json:"form"`
	Ledger  string    `json:"ledger"`
	Epoch   uint64    `json:"epoch"`
	Schema  int       `json:"schema"`
	Program string    `json:"program"`
	Rules   string    `json:"rules"`
	Line    uint64    `json:"line"`
	Hash    string    `json:"hash"`
	PutBack uint64    `json:"putBack"`
	At      time.Time `json:"at"`
	Whole   time.Time `json:"whole"`
}

func (o Verification) titleOf(l *boltledger.Ledger) title {
	info := l.Info()
	return title{Form: checkpointForm, Ledger: info.ID, Epoch: info.Epoch, Schema: info.Schema, Program: o.Program, Rules: proof.Rules()}
}

// writeCheckpoint writes the checkpoint of a verification. Without a state it removes the one that is there: nothing may be
// left that speaks of less than was known. A crash leaves the former file or the new one, whole.
func (o Verification) writeCheckpoint(ctx context.Context, l *boltledger.Ledger, c *checkpoint, s *proof.State) (err error) {
	if err := context.Cause(ctx); err != nil || o.StateDir == "" {
		return err
	}
	if s == nil {
		return errors.New("too many entries are on their way, or the ledger is in safe mode")
	}
	c.Replay = *s
	t := o.titleOf(l)
	t.Line, t.Hash, t.PutBack, t.At, t.Whole = s.Head.N, s.Head.Hash.String(), s.PutBack, c.At, c.Whole
	var body bytes.Buffer
	if err := errors.Join(json.NewEncoder(&body).Encode(t), gob.NewEncoder(&body).Encode(c)); err != nil {
		return fmt.Errorf("encode checkpoint: %w", err)
	}
	sum := sha256.Sum256(body.Bytes())
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
	if _, err := fmt.Fprintf(f, "%x\n%s", sum, body.Bytes()); err != nil {
		return err
	}
	// If root runs the command, the file must be the daemon's all the same:
	// else the daemon could not read it.
	if info, err := dir.Stat(); err == nil && os.Geteuid() == 0 {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
				return err
			}
		}
	}
	// A crash before this leaves the former checkpoint, and a file that the next one replaces.
	return f.Commit()
}

// readCheckpoint reads the checkpoint; nil: there is none, or the error is an [*unusableError], because it is not one of this ledger,
// of this program and of the last days. past is what it says of the journal of this ledger, also where it cannot be used.
func (o Verification) readCheckpoint(l *boltledger.Ledger) (c *checkpoint, past *title, err error) {
	if o.StateDir == "" {
		return nil, nil, nil
	}
	root, err := os.OpenRoot(o.StateDir)
	if err != nil {
		return nil, nil, unusable("%v", err)
	}
	defer root.Close() // read-only
	f, info, err := durable.OpenRegular(root, CheckpointName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unusable("it cannot be read: %v", err)
	}
	defer f.Close() // read-only
	if info.Size() > mostCheckpoint {
		return nil, nil, unusable("it has %d bytes, which is none of ours", info.Size())
	}
	in, t, err := readTitle(f)
	if err != nil {
		return nil, nil, err
	}
	want := o.titleOf(l)
	if t.Ledger != want.Ledger {
		return nil, nil, unusable("it is of another ledger, %q", t.Ledger)
	}
	c, err = o.decodeCheckpoint(in, t, want)
	return c, &t, err
}

// decodeCheckpoint reads what follows the title t. want is the title that it must have, but for what differs with each.
func (o Verification) decodeCheckpoint(in io.Reader, t, want title) (*checkpoint, error) {
	want.Line, want.Hash, want.PutBack, want.At, want.Whole = t.Line, t.Hash, t.PutBack, t.At, t.Whole
	age := o.Now().Sub(t.Whole)
	switch {
	case t != want:
		return nil, unusable("it is of another version of the program or of the ledger")
	case age < 0 || age > maxAge:
		return nil, unusable("the whole ledger was read at %s last, and must be once in %d days", t.Whole.UTC().Format(time.RFC3339), maxAge/(24*time.Hour))
	}
	c := &checkpoint{}
	if err := gob.NewDecoder(in).Decode(c); err != nil {
		return nil, unusable("it cannot be decoded: %v", err)
	}
	if c.Records.Head.N != t.Line || c.Records.Head != c.Replay.Head || !c.Whole.Equal(t.Whole) {
		return nil, unusable("its parts are of different lines")
	}
	return c, nil
}

// readTitle reads the title of a checkpoint; in gives what follows it. Nothing is believed before the digest of all is right.
func readTitle(f io.ReadSeeker) (in *bufio.Reader, t title, err error) {
	in = bufio.NewReader(f)
	first, err := in.ReadString('\n')
	h := sha256.New()
	if err == nil {
		_, err = io.Copy(h, in)
	}
	if err != nil || first != hex.EncodeToString(h.Sum(nil))+"\n" {
		return nil, t, unusable("it is damaged: its SHA-256 is not the one that it states")
	}
	if _, err := f.Seek(int64(len(first)), io.SeekStart); err != nil {
		return nil, t, unusable("it cannot be read: %v", err)
	}
	in.Reset(f)
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &t)
	}
	if err != nil {
		return nil, t, unusable("it cannot be decoded: %v", err)
	}
	return in, t, nil
}
