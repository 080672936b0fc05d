package main

import (
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// What the rows of PDFs count holds on every machine: each PDF is registered once and sent once, whole, by vaultd's client, by a
// bare one, and by the whole program.
func TestCounted_PDF(t *testing.T) {
	b := quickBench(t)
	sides := map[string]side{
		"OwnClient":  {Run: b.pdfCallsRun(12, fakeOptions{TLS: true, Verify: true}, ownPDFCalls)},
		"BareClient": {Run: b.pdfCallsRun(12, fakeOptions{TLS: true, Verify: true}, barePDFCalls)},
	}
	if !kit.Sampled(t, "PDFs through the real program") {
		sides["Vaultd"] = side{Run: b.pdfRun(12, fakeOptions{TLS: true, Verify: true})}
	}
	for name, one := range sides {
		t.Run(name, func(t *testing.T) {
			s, err := one.Run(t.Context(), t.TempDir())
			must(t, err)
			for _, c := range pdfCounts() {
				if kit.Race && strings.HasPrefix(c.Name, "peak RssAnon") {
					continue // both clients run in this process, whose memory is the race detector's
				}
				v := c.Of(s)
				kit.Check(t, c.Holds == nil || c.Holds(v), "%s: %.4g, wanted %s", c.Name, v, c.Want)
			}
			if files, err := b.pdfFiles(t.Context(), 12); err != nil || len(files) != 12 || s.Out < 12*38_000 || s.Docs != 12 {
				t.Errorf("%d bytes of %d files were stored, %d documents counted: %v", s.Out, len(files), s.Docs, err)
			}
		})
	}
}
