package packager

import (
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// BenchmarkBuild seals a small and an average invoice; bytes are those dropped.
func BenchmarkBuild(b *testing.B) {
	for name, files := range map[string]tree{
		"Tiny":   {"metadata.json": sidecar, "invoice.xml": strings.Repeat("<cbc:ID>4711</cbc:ID>\n", 900)},
		"Normal": {"metadata.json": sidecar, "invoice.xml": strings.Repeat("<cbc:ID>4711</cbc:ID>\n", 900), "invoice.pdf": "%PDF" + noise(1, 440_000)},
	} {
		b.Run(name, func(b *testing.B) {
			_, root := drop(b, files)
			to := filepath.Join(b.TempDir(), "a.zip")
			size := 0
			for _, content := range files {
				size += len(content)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				kit.Value(buildAt(b.Context(), root, rules, to))(b)
			}
		})
	}
}
