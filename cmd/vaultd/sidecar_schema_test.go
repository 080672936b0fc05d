package main_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
)

// sidecars are sidecars with the verdict that schema and packager must share.
var sidecars = map[string]struct {
	text string
	good bool
}{
	"Least":             {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31"}`, true},
	"Whole":             {`{"documentType":"CreditNote","documentId":"R 1/2","documentDate":"2026-10-31T14:30:00Z","senderName":"ACME","senderIds":["DE1"],"recipientName":"Otto","recipientIds":["DE2","4"],"currencyCode":"EUR","buyerReferenceId":"B","buyerReferenceType":"order","amount":1234.56,"additionalParameters":[{"key":"k","value":"v"},{"key":"k2"}],"tradingPartner":"T","flowDirection":"sending","clientUUID":"10d9e26c-5a3c-4a58-b3c1-3a8f9f0a7a11"}`, true},
	"Fraction":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31T14:30:00.123Z"}`, true},
	"EmptyFields":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"","senderIds":[],"currencyCode":"","amount":"","flowDirection":"","clientUUID":""}`, true},
	"UUIDInCapitals":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","clientUUID":"10D9E26C-5A3C-4A58-B3C1-3A8F9F0A7A11"}`, true},
	"BigAmount":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":9007199254740993.10}`, true},
	"NegativeAmount":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":-1}`, true},
	"Files":             {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":["a.pdf"]}`, true},
	"FilesWithSize":     {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":[{"name":"a.pdf","size":1}]}`, true},
	"NameOf150":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"` + strings.Repeat("ü", 150) + `"}`, true},
	"LineBreakInName":   {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"a\nb"}`, true},
	"NothingAtAll":      {`{}`, false},
	"AList":             {`[]`, false},
	"NoType":            {`{"documentId":"1","documentDate":"2026-10-31"}`, false},
	"NoNumber":          {`{"documentType":"Invoice","documentDate":"2026-10-31"}`, false},
	"NoDate":            {`{"documentType":"Invoice","documentId":"1"}`, false},
	"BlankNumber":       {`{"documentType":"Invoice","documentId":"  ","documentDate":"2026-10-31"}`, false},
	"NumberAsNumber":    {`{"documentType":"Invoice","documentId":1,"documentDate":"2026-10-31"}`, false},
	"NumberOf101":       {`{"documentType":"Invoice","documentId":"` + strings.Repeat("1", 101) + `","documentDate":"2026-10-31"}`, false},
	"NumberWithBreak":   {`{"documentType":"Invoice","documentId":"1\n2","documentDate":"2026-10-31"}`, false},
	"UnknownType":       {`{"documentType":"invoice","documentId":"1","documentDate":"2026-10-31"}`, false},
	"GermanDate":        {`{"documentType":"Invoice","documentId":"1","documentDate":"31.10.2026"}`, false},
	"NoSuchDay":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-02-30"}`, false},
	"NoSuchHour":        {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31T25:00:00Z"}`, false},
	"OtherOffset":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31T14:30:00+01:00"}`, false},
	"NoOffset":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31T14:30:00"}`, false},
	"Year1800":          {`{"documentType":"Invoice","documentId":"1","documentDate":"1800-10-31"}`, false},
	"QuotedAmount":      {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"1234.56"}`, true},
	"QuotedNegative":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"-5"}`, true},
	"QuotedWithSpaces":  {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":" 119.00 "}`, true},
	"QuotedHalf":        {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"0.500"}`, true},
	"QuotedThousand":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"1.234"}`, false},
	"QuotedComma":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"119,00"}`, false},
	"QuotedExponent":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"1e3"}`, false},
	"QuotedZeros":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"0119.00"}`, false},
	"AmountTrue":        {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":true}`, false},
	"NullName":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":null}`, false},
	"NameOf151":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"` + strings.Repeat("ü", 151) + `"}`, false},
	"ReferenceOf101":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","buyerReferenceId":"` + strings.Repeat("x", 101) + `"}`, false},
	"IdsAsText":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderIds":"DE1"}`, false},
	"BlankId":           {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderIds":[" "]}`, false},
	"IdOf301":           {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderIds":["` + strings.Repeat("x", 301) + `"]}`, false},
	"SmallCurrency":     {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","currencyCode":"eur"}`, false},
	"OtherDirection":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","flowDirection":"out"}`, false},
	"UnknownField":      {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","documentdate":"2026-10-31"}`, false},
	"ControlCharacter":  {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"a\u0007b"}`, false},
	"HalfUUID":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","clientUUID":"10d9e26c"}`, false},
	"ZeroUUID":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","clientUUID":"00000000-0000-0000-0000-000000000000"}`, false},
	"ParameterNoKey":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","additionalParameters":[{"value":"v"}]}`, false},
	"ParameterMore":     {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","additionalParameters":[{"key":"k","x":"v"}]}`, false},
	"ParameterAsObject": {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","additionalParameters":{"k":"v"}}`, false},
	"FileOutside":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":["../a.pdf"]}`, false},
	"FileAbsolute":      {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":["/a.pdf"]}`, false},
	"FileNoName":        {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":[{"size":1}]}`, false},
	"FileBadDigest":     {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":[{"name":"a.pdf","sha256":"abc"}]}`, false},
	"FileHalfSize":      {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":[{"name":"a.pdf","size":1.5}]}`, false},
}

// What an editor accepts with the schema, the packager accepts, and the other way round.
func TestSidecarSchema_SaysWhatThePackagerSays(t *testing.T) {
	text, _, _ := runHere("check", "--schema", "sidecar")
	doc := kit.Value(jsonschema.UnmarshalJSON(strings.NewReader(text)))(t)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	kit.Must(t, c.AddResource("urn:vaultd:sidecar", doc))
	schema := kit.Value(c.Compile("urn:vaultd:sidecar"))(t)
	for name, row := range sidecars {
		t.Run(name, func(t *testing.T) {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(row.text))
			kit.Must(t, err)
			if err := schema.Validate(v); (err == nil) != row.good {
				t.Errorf("schema: %v", err)
			}
			dir := t.TempDir()
			for file, text := range map[string]string{"metadata.json": row.text, "a.pdf": "x"} {
				kit.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			root, err := os.OpenRoot(dir)
			kit.Must(t, err)
			defer root.Close()
			_, err = packager.ValidateFolder(t.Context(), root, packager.Rules{Vault: "V"})
			_, refused := errors.AsType[*packager.Refusal](err)
			kit.Check(t, refused != row.good && (err == nil || refused), "packager: %v", err)
		})
	}
}

// I24: docs/archive.md has each field of metadata.json, with its limit, and says
// which must be given.
func TestSidecarSchema_I24_ThePageHasEachField(t *testing.T) {
	type property struct {
		Ref       string `json:"$ref"`
		MaxLength int    `json:"maxLength"`
		Items     *property
	}
	var schema struct {
		Required   []string
		Properties map[string]property
		Defs       map[string]property `json:"$defs"`
	}
	text := kit.Value(os.ReadFile("sidecar.schema.json"))(t)
	kit.Must(t, json.Unmarshal(text, &schema))
	page := kit.Value(os.ReadFile("../../docs/archive.md"))(t)
	_, section, _ := strings.Cut(string(page), "## metadata.json\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(section, -1) {
		rows[m[1]] = m[2]
	}
	kit.Want(t, "fields on the page", slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(schema.Properties)))
	for name, p := range schema.Properties {
		p.MaxLength = max(p.MaxLength, schema.Defs[strings.TrimPrefix(p.Ref, "#/$defs/")].MaxLength)
		if def := schema.Defs[strings.TrimPrefix(p.Ref, "#/$defs/")]; def.Items != nil {
			p.MaxLength = def.Items.MaxLength
		}
		if p.MaxLength > 0 && !strings.Contains(rows[name], strconv.Itoa(p.MaxLength)+" characters") {
			t.Errorf("%s: the page says %q, want %d characters", name, rows[name], p.MaxLength)
		}
		if must := strings.Contains(rows[name], "must be given"); must != slices.Contains(schema.Required, name) {
			t.Errorf("%s: must be given = %v on the page, want %v", name, must, !must)
		}
	}
	kit.Holds(t, "the page", rows["additionalParameters"], "16,000 characters")
}
