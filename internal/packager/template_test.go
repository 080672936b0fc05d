package packager

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// What people copy is refused until its number and date are written into it, and then taken; the example in the help is
// one that is taken.
func TestTemplate_FilledInIsTaken(t *testing.T) {
	for name, rules := range map[string]Rules{
		"Plain":    {Vault: "V"},
		"List":     {Vault: "V", Complete: "list"},
		"Marker":   {Vault: "V", Complete: "marker", Sidecar: "rechnung.json"},
		"Defaults": {Vault: "V", Defaults: map[string]any{"recipientName": "Acme <GmbH>", "recipientIds": []any{"DE1"}, "documentType": "CreditNote", "amount": json.Number("1.10")}},
	} {
		t.Run(name, func(t *testing.T) {
			form, help := MakeTemplate(rules)
			_, example, found := strings.Cut(help, "A whole one:\n\n")
			kit.Need(t, found && !strings.Contains(help, "\r"), "help = %v, want found, help without \"\\r\"", help)
			filled := strings.NewReplacer(`"amount": ""`, `"amount": "119.00"`, `"senderName": ""`, `"senderName": "Huber"`, `"documentId": ""`, `"documentId": "4711"`, `"documentDate": ""`, `"documentDate": "2026-10-31"`, `"files": []`, `"files": ["rechnung.pdf"]`).Replace(string(form))
			for _, sidecar := range []string{filled, example} {
				if _, err := validate(t, rules, sidecar); err != nil {
					t.Errorf("%v\n%s", err, sidecar)
				}
			}
			_, err := validate(t, rules, string(form))
			refusal, ok := errors.AsType[*Refusal](err)
			if !ok || !strings.Contains(refusal.Text(), `"documentId" is missing`) || !strings.Contains(refusal.Text(), `"documentDate" is missing`) {
				t.Errorf("as it is: %v", err)
			}
			again, _ := MakeTemplate(rules)
			kit.Check(t, string(again) == string(form), "not the same twice")
		})
	}
}

func validate(t *testing.T, rules Rules, sidecar string) (SealedFolder, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{rules.withDefaults().Sidecar: sidecar, "rechnung.pdf": "x"} {
		kit.Must(t, os.WriteFile(dir+"/"+name, []byte(content), 0o600))
	}
	if rules.Complete == "marker" {
		kit.Must(t, os.WriteFile(dir+"/"+markerName, nil, 0o600))
	}
	root := kit.Value(os.OpenRoot(dir))(t)
	defer root.Close()
	return ValidateFolder(t.Context(), root, rules)
}
