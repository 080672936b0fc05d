package selfcheck

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// I12: the digests of each kept folder are compared within about thirty days,
// however far apart the looks are: a look may take a day itself.
func TestLook_I12_EachFolderHasItsTurn(t *testing.T) {
	for _, apart := range []time.Duration{24 * time.Hour, 30 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 45 * 24 * time.Hour} {
		met := map[archive.Key]int{}
		before := began
		for now := before.Add(apart); now.Before(began.Add(90 * 24 * time.Hour)); before, now = now, now.Add(apart) {
			for k := range 200 {
				if key := (archive.Key{byte(k)}); isTurnOf(key, before, now) {
					met[key]++
				}
			}
		}
		fewest, most := 200, 0
		for k := range 200 {
			n := met[archive.Key{byte(k)}]
			fewest, most = min(fewest, n), max(most, n)
		}
		kit.Check(t, fewest >= 1 && most <= 4, "looks %s apart for 90 days: a folder had %d to %d turns, want 1 to 4", apart, fewest, most)
	}
	at := 0
	for k := range 200 {
		if isTurnOf(archive.Key{byte(k)}, began.Add(-firstSince), began) {
			at++
		}
	}
	kit.Check(t, at < 40, "the first look reads %d of 200 folders whole, want a thirtieth", at)
}
