package apicall

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"vaultd/internal/sanitize"
)

const (
	maxWords    = 500
	pageWords   = "an HTML page (a proxy's?)"
	maxScrubbed = 16 << 10 // of a text is looked at closely; what is shown comes from its beginning
)

// explainAnswer puts the body of an error answer into words, whatever form it has: the JSON shapes of the service's
// interfaces, the object store's XML, a page of some gateway, plain text, nothing. field is the first field of the request that
// it names.
func explainAnswer(contentType string, body []byte, hide []string) explanation {
	body = bytes.TrimSpace(trimBOM(body))
	var e explanation
	switch {
	case len(body) == 0:
		return explanation{message: "no explanation given"}
	case isWebPage(body):
		return explanation{message: hideSecrets(strings.TrimSuffix(pageWords+": "+pageTitle(body), ": "), hide, maxWords)}
	case body[0] == '<':
		e.code, e.message = xmlWords(body)
	case body[0] == '{' || body[0] == '[' || body[0] == '"':
		e = jsonWords(body)
	case bytes.IndexByte(body, 0) >= 0:
		return explanation{message: "an explanation that is not text"}
	}
	if e.code == "" && e.message == "" {
		e.message = string(body)
	}
	return e.withoutSecrets(hide)
}

// explanation is what the body of an error answer says.
type explanation struct {
	code    string // of the fault
	class   string // of the fault: "VALIDATION"
	id      string // of this one error, by which the other side's support finds it
	message string
	field   string // of the request, that the first phrase with one is about
}

// withoutSecrets returns e with short texts that are safe to show.
func (e explanation) withoutSecrets(hide []string) explanation {
	short := func(s string) string { return sanitize.Message(hideSecrets(s, hide, 100), 100) }
	return explanation{code: short(e.code), class: short(e.class), id: short(e.id), message: hideSecrets(e.message, hide, maxWords), field: hideSecrets(e.field, hide, 100)}
}

// isWebPage reports whether body, or its beginning, is HTML, whatever its header says.
func isWebPage(body []byte) bool {
	head := bytes.ToLower(body[:min(len(body), 512)])
	return bytes.Contains(head, []byte("<!doctype html")) || bytes.Contains(head, []byte("<html"))
}

// isErrorDocument reports whether body, or its beginning, is an error as object stores write them: XML whose outermost
// element is Error. Other content proves nothing: some gateways answer an upload in words of their own.
func isErrorDocument(body []byte) bool {
	dec := xml.NewDecoder(bytes.NewReader(trimBOM(body)))
	dec.Strict = false
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		if start, ok := tok.(xml.StartElement); ok {
			return strings.EqualFold(start.Name.Local, "Error")
		}
	}
}

var titlePattern = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

func pageTitle(body []byte) string {
	if m := titlePattern.FindSubmatch(body[:min(len(body), maxScrubbed)]); m != nil {
		return string(m[1])
	}
	return ""
}

// xmlWords reads Code, Message and the names of headers that are not signed,
// wherever they stand, and nothing else: other elements of the store's errors
// repeat the request with its signature.
func xmlWords(body []byte) (code, message string) {
	var unsigned string
	defer func() {
		if unsigned != "" {
			message = strings.TrimSpace(message + " (" + unsignedWords + unsigned + ")")
		}
	}()
	dec := xml.NewDecoder(bytes.NewReader(body))
	dec.Strict = false
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		tok, err := dec.Token()
		if err != nil {
			return code, message
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		var into *string
		switch strings.ToLower(start.Name.Local) {
		case "code":
			into = &code
		case "message":
			into = &message
		case "headersnotsigned":
			into = &unsigned
		default:
			continue
		}
		var text string
		if dec.DecodeElement(&text, &start) == nil && *into == "" {
			*into = strings.TrimSpace(text)
		}
	}
}

func jsonWords(body []byte) explanation {
	var v any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return explanation{}
	}
	var w jsonPhrases
	w.collectPhrases(v, 0)
	w.message = strings.Join(w.said, "; ")
	return w.explanation
}

// jsonPhrases collects an explanation from the values of a JSON text.
type jsonPhrases struct {
	explanation
	said []string
}

// Names under which the platform's services put words, best first, and names that say what the words are about.
var (
	wordKeys  = []string{"error_description", "message", "msg", "fieldmessage", "detail", "title", "info", "error", "errors", "errormessages", "validationerrors"}
	aboutKeys = []string{"fieldid", "loc"}
)

func (w *jsonPhrases) collectPhrases(v any, depth int) {
	if depth > 6 || len(w.said) >= 8 {
		return
	}
	switch v := v.(type) {
	case string:
		w.addPhrase("", v)
	case []any:
		for _, e := range v {
			w.collectPhrases(e, depth+1)
		}
	case map[string]any:
		w.collectObject(v, depth)
	}
}

func (w *jsonPhrases) collectObject(m map[string]any, depth int) {
	low := make(map[string]any, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) { // services write message and Message; of both, the small one comes last and counts
		low[strings.ToLower(k)] = m[k]
	}
	if code := codeOf(low); w.code == "" && code != "" {
		w.code = code
		// The names type and id mean something else in other objects: only those beside a code are of the error.
		w.class, w.id = joinFieldPath(low["type"]), joinFieldPath(low["id"])
	}
	about := ""
	for _, k := range aboutKeys {
		about += joinFieldPath(low[k])
	}
	if path := strings.TrimPrefix(about, "body."); w.field == "" && path != "body" { // the part of the request is no field of it
		w.field = path
	}
	for _, k := range wordKeys {
		switch v := low[k].(type) {
		case string:
			w.addPhrase(about, v)
		case []any, map[string]any:
			w.collectPhrases(v, depth+1)
		}
	}
}

func codeOf(m map[string]any) string {
	if s, ok := m["code"].(string); ok {
		return s
	}
	if n, ok := m["code"].(json.Number); ok {
		return n.String()
	}
	if s, ok := m["error"].(string); ok && !strings.Contains(s, " ") {
		return s
	}
	return ""
}

func (w *jsonPhrases) addPhrase(about, text string) {
	text = strings.TrimSpace(text)
	if about != "" {
		text = about + ": " + text
	}
	if text != "" && !slices.Contains(w.said, text) {
		w.said = append(w.said, text)
	}
}

// joinFieldPath writes a field's name, which may be a list of steps, as one word.
func joinFieldPath(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case []any:
		var steps []string
		for _, e := range v {
			steps = append(steps, joinFieldPath(e))
		}
		return strings.Join(steps, ".")
	}
	return ""
}

// What secrets look like in running text, where we do not know them by value.
var (
	queryPattern = regexp.MustCompile(`(?i)(https?://[^\s?"'<>]*)\?[^\s"'<>]*`)
	authPattern  = regexp.MustCompile(`(?i)\b(bearer|basic)[ +][a-z0-9._~+/=-]{6,}`)
	namedPattern = regexp.MustCompile(`(?i)(x-amz-signature|x-amz-credential|x-amz-security-token|signature|access_token|client_secret|password|secret)(["']?\s*[=:]\s*["']?)[^\s&"'<>,;]+`)
)

// hideSecrets hides what is, or looks like, a secret, and sanitizes the rest to at most limit characters. Known secrets are searched
// before and after that, because an invisible character that is removed may have split one.
func hideSecrets(text string, hide []string, limit int) string {
	hide = slices.Clone(hide)
	slices.SortFunc(hide, func(a, b string) int { return len(b) - len(a) })
	text = hideAll(text, hide)
	text = hideAll(sanitize.Message(text[:min(len(text), maxScrubbed)], maxScrubbed), hide)
	text = queryPattern.ReplaceAllString(text, "$1?[hidden]")
	text = authPattern.ReplaceAllString(text, "$1 [hidden]")
	text = namedPattern.ReplaceAllString(text, "$1$2[hidden]")
	return sanitize.Message(text, limit)
}

func hideAll(text string, hide []string) string {
	for _, s := range hide {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "[hidden]")
		}
	}
	return text
}
