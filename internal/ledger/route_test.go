package ledger

import (
	"strings"
	"testing"
)

// I2: each route has one way to learn what became of a document at most: it asks, it is notified, or nobody tells. Only where nobody can be
// asked may it stay unknown whether a document was delivered; then the cause says where to look, and what each decision does.
func TestRoute_I2_HowItLearnsWhatBecame(t *testing.T) {
	for _, r := range Routes() {
		if r.IsAsked() && r.IsNotified() || r.IsNotified() != (r == Network) || r.IsAsked() != (r == Vault) {
			t.Errorf("%s: asked %t, notified %t", r, r.IsAsked(), r.IsNotified())
		}
		if r.HasVaults() != (r == Vault) || r.PackageEnding() == "" {
			t.Errorf("%s: has vaults %t, packages end with %q", r, r.HasVaults(), r.PackageEnding())
		}
		c := DeliveryUnknown(r, "the upload was never answered")
		for _, want := range []string{"the upload was never answered, ", "vaultd close", "vaultd release"} {
			if !r.IsAsked() && !strings.Contains(c.Text, want) {
				t.Errorf("%s: %q is missing in %q", r, want, c.Text)
			}
		}
	}
	if text := DeliveryUnknown(Network, "").Text; strings.Contains(text, "accounts-payable") || strings.Contains(text, "PDF") || !strings.Contains(text, "no double") {
		t.Errorf("%q", text)
	}
}
