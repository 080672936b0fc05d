package ledger

import (
	"bytes"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// What a line says is the same after it was read and written again, and a head never depends on anything but the bytes.
func FuzzLine(f *testing.F) {
	f.Add(FirstLine("L-1", "test", time.Unix(0, 0)).Encode())
	f.Add([]byte(`{"n":2,"at":"2026-11-20T10:00:00.000Z","event":"status-seen","key":"06gzjdqx1hf98hs4xds9252kmc","rev":3,"state":"archived","source":"claimed","uid":0}`))
	f.Add([]byte(`{"n":18446744073709551616}`))
	f.Add([]byte(`{"n":1,"N":2,"flags":"\u2028<\xff"}`))
	f.Add([]byte("}"))
	f.Add([]byte(`{"n":1,"n":2,"size":007,"uid":4294967295,"rev":4294967296,"vault":"V","vault":""}`))
	f.Add([]byte(`{"n":3,"at":"","event":"x","cause":"a b","other":"","flags":"hold","reason":"","ledger":"L","environment":"e"},`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ParseLine(b)
		if err != nil {
			return
		}
		once := l.Encode()
		again, err := ParseLine(once)
		if err != nil || !bytes.Equal(again.Encode(), once) || bytes.ContainsAny(once, "\n\r") {
			t.Errorf("%q is read and written as %q (%v), want it unchanged on one line", once, again.Encode(), err)
		}
		h := (Head{}).Next(once)
		kit.Check(t, h == (Head{}).Next(again.Encode()) && h.N == 1, "head = %+v, want line 1 and one hash for one line", h)
	})
}
