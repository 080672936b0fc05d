package boltledger_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"

	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// I15: whatever bytes are in the ledger file and its outside head: opening
// them is refused in words or succeeds, the check comes to an end, and nothing
// panics.
func FuzzOpen_I15(f *testing.F) {
	dir, _ := filled(f)
	whole := kit.Value(os.ReadFile(pathIn(dir, fileName)))(f)
	outside := kit.Value(os.ReadFile(pathIn(dir, headName)))(f)
	f.Add([]byte{0, 0, 0, 0, 1}, []byte{}, uint32(0))
	f.Add([]byte{0, 0, 0x10, 0x10, 3, 0, 0, 0x20, 9, 0x80}, []byte{0, 5, 1}, uint32(0))
	f.Add([]byte{0, 0, 0x30, 0, 7}, []byte{2, 0, 1}, uint32(5000))
	f.Add([]byte{0, 0, 0x10, 0x10, 1}, []byte{}, uint32(100)) // a meta page, and the end is cut off
	f.Fuzz(func(t *testing.T, flips, head []byte, cut uint32) {
		bad, badHead := bytes.Clone(whole), bytes.Clone(outside)
		for ; len(flips) >= 5; flips = flips[5:] {
			bad[int(binary.BigEndian.Uint32(flips))%len(bad)] ^= flips[4]
		}
		for ; len(head) >= 3; head = head[3:] {
			badHead[int(binary.BigEndian.Uint16(head))%len(badHead)] ^= head[2]
		}
		bad = bad[:len(bad)-int(cut)%len(bad)]
		at := t.TempDir()
		kit.Must(t, errors.Join(os.WriteFile(pathIn(at, fileName), bad, 0o600), os.WriteFile(pathIn(at, headName), badHead, 0o600)))
		l, err := boltledger.Open(boltledger.Config{Dir: at})
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = l.Verify(ctx)
		kit.Check(t, ctx.Err() == nil, "the check does not end: %v", err)
		_ = l.Close() // a damaged one may say so
	})
}
