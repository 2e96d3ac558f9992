// Renders the chart's templates where helm is not: the functions of helm's that they use, over JSON from standard input.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"
)

func main() {
	var given map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	whole := template.New("chart")
	whole.Funcs(template.FuncMap{
		"fail": func(text string) (string, error) { return "", fmt.Errorf("%s", text) },
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := whole.ExecuteTemplate(&out, name, data)
			return strings.TrimSpace(out.String()), err
		},
		"toYaml": func(value any) (string, error) { text, err := json.Marshal(value); return string(text), err },
		"nindent": func(n int, text string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(text, "\n", pad)
		},
		"quote": func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"default": func(other, value any) any {
			if value == nil || value == "" {
				return other
			}
			return value
		},
		"add": func(a, b any) string { return fmt.Sprint(number(a) + number(b)) },
	})
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		if err == nil {
			_, err = whole.New(path).Parse(string(text))
		}
		if err != nil {
			panic(err)
		}
	}
	for _, path := range os.Args[1:] {
		if strings.HasSuffix(path, ".tpl") {
			continue
		}
		fmt.Println("---")
		if err := whole.ExecuteTemplate(os.Stdout, path, given); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func number(value any) int {
	if whole, ok := value.(float64); ok {
		return int(whole)
	}
	return value.(int)
}
