package archive

import (
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

func TestNameFolder(t *testing.T) {
	for _, row := range []struct {
		words []string
		want  string
	}{
		{[]string{"Sent", "Müller & Söhne", "RE-4711"}, "Sent Müller & Söhne RE-4711"}, {[]string{"Received", "", ""}, "Received"},
		{[]string{"Sent", " A/B\\C:\tD\x00 ", "N 1/2."}, "Sent A_B_C_ D_ N 1_2"}, {[]string{"Sent", "\xff", "1"}, "Sent _ 1"},
		{[]string{"Sent", strings.Repeat("𝄞", 80)}, "Sent " + strings.Repeat("𝄞", 48)},
	} {
		kit.Want(t, fmt.Sprintf("%q becomes", row.words), NameFolder(row.words...), row.want)
	}
}

func TestMakeSidecar(t *testing.T) {
	id := DeriveSentID("1")
	if got := string(MakeSidecar(id, []string{"a"}, []byte(`{"documentId":"x"}`))); got != "{\n  \"clientUUID\": \""+id.String()+"\",\n  \"files\": [\n    \"a\"\n  ],\n  \"documentId\": \"x\"\n}\n" {
		t.Error(got)
	}
	if got := string(MakeSidecar(id, []string{"a"}, []byte("{}"))); !strings.HasSuffix(got, "  ]\n}\n") {
		t.Errorf("got = %v, want got that ends with \" ]\\n}\\n\"", got)
	}
	kit.Check(t, DeriveSentID("1") != DeriveReceivedID("1"), "what was sent and what came in have one identity")
}
