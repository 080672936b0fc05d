package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const bareCounter = "bare"

// countBare counts the failures of a test that print bare values.
func (t *tree) countBare(f goFile) {
	if !slices.ContainsFunc(f.syntax.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` }) {
		return
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isBare(call) {
			begin, end := f.set.Position(call.Pos()), f.set.Position(call.End())
			text, _, _ := strings.Cut(string(f.src[begin.Offset:end.Offset]), "\n")
			t.hit(bareCounter, f.path, begin.Line, text)
		}
		return true
	})
}

// isBare reports whether a call reports a failure by values alone.
func isBare(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if ok && lastName(method.X) == "kit" && len(call.Args) > 2 && slices.Contains([]string{"Check", "Need"}, method.Sel.Name) {
		format, ok := literal(call.Args[2])
		return ok && !hasWord(format)
	}
	if !ok || len(call.Args) == 0 || !slices.Contains([]string{"t", "b", "f", "tb"}, lastName(method.X)) {
		return false
	}
	switch method.Sel.Name {
	case "Error", "Fatal":
		return !slices.ContainsFunc(call.Args, holdsText) && slices.ContainsFunc(call.Args, isValue)
	case "Errorf", "Fatalf":
		format, ok := literal(call.Args[0])
		return ok && !hasWord(format)
	}
	return false
}

// holdsText reports whether an argument is a text with a word in it.
func holdsText(arg ast.Expr) bool {
	switch arg := arg.(type) {
	case *ast.BinaryExpr:
		return holdsText(arg.X) || holdsText(arg.Y)
	case *ast.CallExpr:
		return strings.HasPrefix(lastName(arg.Fun), "Sprint") && slices.ContainsFunc(arg.Args, holdsText)
	}
	text, ok := literal(arg)
	return ok && hasWord(text)
}

// isValue reports whether an argument is something else than an error, by its
// name.
func isValue(arg ast.Expr) bool {
	if call, ok := arg.(*ast.CallExpr); ok {
		arg = call.Fun
	}
	return !errorName.MatchString(lastName(arg))
}

var errorName = regexp.MustCompile(`(?i)errs?$|^Join$`)

// lastName returns the last name of an expression such as t or w.t.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literal returns the text of a string literal, or of several with + between
// them.
func literal(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, isLeft := literal(e.X)
		right, isRight := literal(e.Y)
		return left + right, isLeft && isRight
	}
	return "", false
}

var verb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z%]`)

// hasWord reports whether a format has a letter outside its verbs.
func hasWord(format string) bool {
	return strings.ContainsFunc(verb.ReplaceAllString(format, ""), unicode.IsLetter)
}
