package archive_test

import (
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// Each generation that a document can have is recognised, and no other one.
func TestGeneration_I2_EachIsRecognised(t *testing.T) {
	id := archive.DeriveID("V", archive.Sum([]byte("a")), archive.Digest{})
	for n := range archive.MaxGeneration + 2 {
		later := id.Generation(n)
		got, ok := id.GenerationOf(later)
		kit.Want(t, "recognised", ok, n <= archive.MaxGeneration)
		if ok {
			kit.Want(t, "generation", int(got), n)
		}
	}
}
