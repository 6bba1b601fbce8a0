package chart

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

// module is where definitions come from: their files in the operator's own module, fetched but never compiled.
type module struct{ path, sum string }

var (
	prometheus = module{"github.com/prometheus-operator/prometheus-operator@v0.94.1", "h1:QEIb2wenPH+SdMN1xMf8l4Pmj00YYXXI6HlbLlQWkww="}
	keda       = module{"github.com/kedacore/keda/v2@v2.18.0", "h1:ttR223fii/4QJ0YvtrhcWHaEoezByb/t5CeFopjl6EI="}
)

var definitions = map[string]struct {
	module module
	file   string
}{
	"PodMonitor":            {prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"},
	"ServiceMonitor":        {prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"},
	"PrometheusRule":        {prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"},
	"ScaledObject":          {keda, "config/crd/bases/keda.sh_scaledobjects.yaml"},
	"TriggerAuthentication": {keda, "config/crd/bases/keda.sh_triggerauthentications.yaml"},
}

// fetch gives the module's folder in Go's cache, after its sum was compared.
func fetch(t *testing.T, m module) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.path)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &got); err != nil || jsonErr != nil {
		t.Fatalf("download %s: %v %v %s", m.path, err, jsonErr, got.Error)
	}
	if got.Sum != m.sum {
		t.Fatalf("%s has the sum %s, not %s", m.path, got.Sum, m.sum)
	}
	return got.Dir
}

func TestObjects_OfOperatorsAreValid(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range cases {
		for id, r := range mustRender(t, name) {
			d, custom := definitions[r.kind()]
			if !custom {
				continue
			}
			seen[r.kind()] = true
			for _, complaint := range judgeCustom(t, filepath.Join(fetch(t, d.module), d.file), r) {
				t.Errorf("%s: %s: %s", name, id, complaint)
			}
		}
	}
	for kind := range definitions {
		if !seen[kind] && (kind != "PrometheusRule" || os.Getenv("CHART") == "") {
			t.Errorf("no case renders a %s", kind)
		}
	}
}

// judgeCustom holds an object against its definition: fields that it does not have, then what it says of the others.
func judgeCustom(t *testing.T, file string, r rendered) (complaints []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	for _, v := range definition.Spec.Versions {
		if definition.Spec.Group+"/"+v.Name != r.object["apiVersion"] {
			continue
		}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
			t.Fatal(err)
		}
		structural, err := schema.NewStructural(&internal)
		if err != nil {
			t.Fatal(err)
		}
		validator, _, err := validation.NewSchemaValidator(&internal)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range validation.ValidateCustomResource(nil, r.object, validator) {
			complaints = append(complaints, err.Error())
		}
		for _, path := range pruning.PruneWithOptions(r.object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
			complaints = append(complaints, "there is no field "+path)
		}
		return complaints
	}
	return []string{"its definition has no such version"}
}
