package browser

import "testing"

// TestPages looks at what vaultd shows to people, in one Chromium.
func TestPages(t *testing.T) {
	c := startChromium(t)
	program := buildProgram(t)
	w := newWorld(t, program, "")
	w.start()
	w.dropAll()
	d := doubts{}
	t.Run("Report_NoBarrierNothingCutOffNothingAsked", func(t *testing.T) { testReport(t, c, w, d) })
	d.print(t)
}
