package boltledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

const (
	slotSize    = 512 // one sector: it is written whole or not at all
	maxLedgerID = 64
	syncEvery   = time.Second // while busy
)

// headRecord is the journal's end as it is kept outside the ledger file.
type headRecord struct {
	N           uint64 `json:"n"`
	Hash        string `json:"hash"`
	Ledger      string `json:"ledger"`
	Incarnation uint64 `json:"incarnation"` // of the ledger file, as in the name of this one
	Sum         string `json:"sum"`         // CRC-32C of the other four, as checksum computes it

	isUnreadable bool // the file is there, and none of its slots is whole
}

func (r headRecord) checksum() string {
	s := fmt.Sprintf("%d %s %s %d", r.N, r.Hash, r.Ledger, r.Incarnation)
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(s), castagnoli))
}

// headFile writes the outside head. The file has two slots that are written alternately, in
// place: whatever a crash does to one, the other holds the commit before.
type headFile struct {
	file   *os.File
	ledger string
	of     uint64    // incarnation
	n      uint64    // line number that was last written
	slot   int64     // the next to write
	dirty  bool      // written since the last sync
	synced time.Time // of the last sync
	syncs  atomic.Uint64
}

// headNameOf returns the name of the outside head of an incarnation of the ledger.
func headNameOf(incarnation uint64) string {
	return headName + "." + strconv.FormatUint(incarnation, 10)
}

// incarnationIn returns the number in the name of an outside head.
func incarnationIn(name string) (n uint64, ok bool) {
	number, ok := strings.CutPrefix(name, headName+".")
	n, err := strconv.ParseUint(number, 10, 32)
	return n, ok && err == nil && headNameOf(n) == name
}

// readHead returns the newest record of the outside head of the latest
// incarnation; nil where there is none. A copy of a head under the name of
// another incarnation is none.
func readHead(dir string) (latest *headRecord, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		n, ok := incarnationIn(e.Name())
		if !ok || latest != nil && n < latest.Incarnation {
			continue
		}
		f, openErr := openHeadFile(dir, n, os.O_RDONLY)
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		r, _ := newestSlot(f)
		_ = f.Close() // read-only
		if r == nil { // both slots cannot be torn by one crash: only one is written at a time
			r = &headRecord{Incarnation: n, isUnreadable: true}
		}
		if r.Incarnation == n {
			latest = r
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read outside head: %w", err)
	}
	return latest, nil
}

func openHeadFile(dir string, incarnation uint64, mode int) (*os.File, error) {
	return os.OpenFile(pathIn(dir, headNameOf(incarnation)), mode|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// newestSlot reads both slots; a slot that does not pass its checksum is none,
// and so are those of a file that cannot be read.
func newestSlot(f *os.File) (newest *headRecord, slot int64) {
	b := make([]byte, 2*slotSize)
	_, _ = f.ReadAt(b, 0)
	for i := range 2 {
		var r headRecord
		text := bytes.TrimSpace(b[i*slotSize : (i+1)*slotSize])
		// A torn write fails its checksum. The other slot then tells of the commit before, which is enough.
		if json.Unmarshal(text, &r) != nil || r.Sum != r.checksum() {
			continue
		}
		if newest == nil || r.N > newest.N {
			newest, slot = &r, int64(i)
		}
	}
	return newest, slot
}

// openHead opens the outside head of a ledger for writing, makes it where it is
// missing, and brings it up to the end of the journal.
func openHead(dir string, s summary) (*headFile, error) {
	h := &headFile{ledger: s.Info.ID, of: s.This.N, synced: time.Now()}
	if err := h.openFile(dir, s.Head); err != nil {
		return nil, fmt.Errorf("write outside head: %w", err)
	}
	return h, nil
}

func (h *headFile) openFile(dir string, end ledger.Head) (err error) {
	h.file, err = openHeadFile(dir, h.of, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		if err = h.createFile(dir, end); err == nil {
			h.file, err = openHeadFile(dir, h.of, os.O_RDWR)
		}
	}
	if err != nil {
		return err
	}
	// The next record goes into the other slot, so that the newest one survives a torn write.
	if newest, slot := newestSlot(h.file); newest != nil {
		h.n, h.slot = newest.N, 1-slot
	}
	// A crash left the head behind. It is brought up and synced before anything new is committed.
	if err := errors.Join(h.writeRecord(end), h.syncFile()); err != nil {
		return errors.Join(err, h.file.Close())
	}
	return nil
}

// createFile makes the file beside its place, so that it never exists without a
// record.
func (h *headFile) createFile(dir string, end ledger.Head) error {
	d, err := durable.Open(dir, nil)
	if err != nil {
		return err
	}
	defer d.Close() // nothing is written through it
	b, err := h.encodeRecord(end)
	if err != nil {
		return err
	}
	return d.WriteFile(headNameOf(h.of), append(b, make([]byte, slotSize)...), 0o600)
}

// encodeRecord returns a slot that says that the journal ends at end.
func (h *headFile) encodeRecord(end ledger.Head) ([]byte, error) {
	r := headRecord{N: end.N, Hash: end.Hash.String(), Ledger: h.ledger, Incarnation: h.of}
	r.Sum = r.checksum()
	text, err := json.Marshal(r)
	if err != nil || len(text) >= slotSize {
		return nil, fmt.Errorf("encode outside head: %d bytes: %w", len(text), err)
	}
	b := append(text, bytes.Repeat([]byte{' '}, slotSize-len(text)-1)...)
	return append(b, '\n'), nil
}

// writeRecord records that the journal ends at end, unless that was the last it wrote.
func (h *headFile) writeRecord(end ledger.Head) error {
	if end.N == h.n {
		return nil
	}
	// Written after the commit, never before it: the head may be behind the
	// ledger, but must not be ahead of it.
	b, err := h.encodeRecord(end)
	if err != nil {
		return err
	}
	// Without a sync: this survives the death of the process. A power cut can cost the last second of heads.
	if _, err := h.file.WriteAt(b, h.slot*slotSize); err != nil {
		return err
	}
	h.n, h.slot, h.dirty = end.N, 1-h.slot, true
	return nil
}

func (h *headFile) syncFile() error {
	if !h.dirty {
		return nil
	}
	h.dirty, h.synced = false, time.Now()
	h.syncs.Add(1)
	return h.file.Sync()
}

// untilSync returns how long the next sync can wait; ok is false where no sync is needed.
func (h *headFile) untilSync() (d time.Duration, ok bool) {
	return syncEvery - time.Since(h.synced), h.dirty
}

func (h *headFile) closeFile() error { return errors.Join(h.syncFile(), h.file.Close()) }

// agreesWith reports whether the record speaks of the same journal end.
func (r headRecord) agreesWith(h ledger.Head) bool {
	d, err := archive.ParseDigest(r.Hash)
	return err == nil && r.N == h.N && d == h.Hash
}
