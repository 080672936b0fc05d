package proof

import (
	"bytes"
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// A receipt says the same after it was read and written again.
func FuzzReceipt(f *testing.F) {
	f.Add([]byte(`{"format":"` + receiptFormat + `"}`))
	f.Add([]byte(`{"format":"` + receiptFormat + `","files":[{"path":"a","size":-1}],"record":"\u0000"}`))
	f.Add([]byte(`{"format":"x"} {}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseReceipt(b)
		if err != nil {
			return
		}
		once := r.Encode()
		again, err := ParseReceipt(once)
		if err != nil || !bytes.Equal(again.Encode(), once) {
			t.Errorf("%q became %q: %v", once, again.Encode(), err)
		}
	})
}

// A journal of which one byte is not as it was written does not pass.
func FuzzChain_I14(f *testing.F) {
	f.Add(uint16(3), byte(1))
	f.Add(uint16(70), byte(0x20))
	f.Add(uint16(200), byte(0xff))
	f.Fuzz(func(t *testing.T, at uint16, with byte) {
		if with == 0 {
			return
		}
		lines := [][]byte{
			[]byte(`{"n":1,"at":"2026-11-20T10:00:00.000Z","event":"created","ledger":"L-1","environment":"test"}`),
			[]byte(`{"n":2,"at":"2026-11-20T10:00:01.000Z","event":"claimed","key":"06gzjdqx1hf98hs4xds9252kmc","rev":1,"state":"discovered","source":"claimed","vault":"V"}`),
		}
		var head ledger.Head
		for _, l := range lines {
			head = head.Next(l)
		}
		whole := bytes.Join(lines, []byte("\n"))
		bad := bytes.Clone(whole)
		bad[int(at)%len(bad)] ^= with
		var got ledger.Head
		for l := range bytes.SplitSeq(bad, []byte("\n")) {
			got = got.Next(l)
		}
		kit.Check(t, got != head, "%q has the head of %q", bad, whole)
		Check(Journal{Lines: numbered(bytes.Split(bad, []byte("\n")))}, func(func(ledger.Entry) bool) {}, Seen{})
	})
}
