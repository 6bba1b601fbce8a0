package api

import (
	"reflect"
	"strings"
)

// fieldNames are all field and place names that a request can have.
var fieldNames = func() map[string]bool {
	known := map[string]bool{"body": true, "query": true, "path": true, "header": true}
	for _, input := range []any{IDPath{}, listInput{}, retryInput{}, resolveInput{}, editInput{}, jobInput{}, JobPath{}, jobReasonInput{},
		jobsInput{}, trialInput{}, groupsInput{}, codePath{}, whereInput{}, searchInput{}, followInput{}, statsInput{},
		DecisionPath{}, whyInput{}, diffInput{}, proposeInput{}, decideInput{}, proposalsInput{}, statesInput{}, flipsInput{}, rowsInput{}, homesInput{}, completenessInput{}, watchersInput{}, surplusInput{}, orderInput{}, touchInput{}, historyInput{},
		assignInput{}, assignGroupInput{}, snoozeInput{}, ruleInput{}, RulePath{}, ruleReasonInput{}, rulesInput{}, groupHistoryInput{}, FingerprintPath{}, auditsInput{}, calendarInput{}} {
		addNames(known, reflect.TypeOf(input))
	}
	return known
}()

func addNames(known map[string]bool, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		for _, tag := range []string{"json", "path", "query"} {
			if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name != "" {
				known[name] = true
			}
		}
		if f.Name == "Body" || f.Tag.Get("json") != "" {
			addNames(known, f.Type)
		}
	}
}
