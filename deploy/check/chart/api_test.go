package chart

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	autoscalingvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
)

// The API server would complain of unknown and repeated fields and wrong types, then validate after its defaults.
func TestObjects_AreValid(t *testing.T) {
	t.Parallel()
	for _, name := range cases {
		objects := mustRender(t, name)
		judged := 0
		for _, id := range slices.Sorted(maps.Keys(objects)) {
			r := objects[id]
			if _, custom := definitions[r.kind()]; custom {
				continue
			}
			judged++
			errs, err := judge(r.text)
			if err != nil {
				t.Errorf("%s: %s: %v", name, id, err)
			}
			for _, err := range errs {
				t.Errorf("%s: %s: %v", name, id, err)
			}
		}
		if judged < 8 {
			t.Errorf("%s: only %d objects were judged", name, judged)
		}
	}
}

func judge(text string) (field.ErrorList, error) {
	strict := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDecoder()
	object, _, err := strict.Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, err
	}
	return validate(object)
}

type unjudged struct{ object runtime.Object }

func (u unjudged) Error() string {
	return "there is no validation for " + u.object.GetObjectKind().GroupVersionKind().Kind
}

func validate(object runtime.Object) (field.ErrorList, error) {
	pods := corevalidation.PodValidationOptions{}
	switch o := object.(type) {
	case *apps.StatefulSet:
		return appsvalidation.ValidateStatefulSet(o, appsvalidation.StatefulSetValidationOptions{}, pods), nil
	case *apps.Deployment:
		return appsvalidation.ValidateDeployment(o, pods), nil
	case *batch.Job:
		// The server sets the selector and its labels before it validates.
		controller := map[string]string{"batch.kubernetes.io/controller-uid": "1", "controller-uid": "1", "job-name": o.Name, "batch.kubernetes.io/job-name": o.Name}
		o.UID = "1"
		o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": "1"}}
		maps.Copy(o.Spec.Template.Labels, controller)
		return batchvalidation.ValidateJobCreate(o, batchvalidation.JobValidationOptions{RequirePrefixedLabels: true}), nil
	case *policy.PodDisruptionBudget:
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{}), nil
	case *networking.NetworkPolicy:
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{}), nil
	case *core.Service:
		// So does the allocator of addresses.
		if o.Spec.ClusterIP != "" {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		o.Spec.IPFamilies = []core.IPFamily{core.IPv4Protocol}
		single := core.IPFamilyPolicySingleStack
		o.Spec.IPFamilyPolicy = &single
		return corevalidation.ValidateServiceCreate(o), nil
	case *core.Pod:
		return corevalidation.ValidatePodCreate(o, pods), nil
	case *autoscaling.HorizontalPodAutoscaler:
		return autoscalingvalidation.ValidateHorizontalPodAutoscaler(o, autoscalingvalidation.HorizontalPodAutoscalerSpecValidationOptions{}), nil
	case *networking.Ingress:
		return networkingvalidation.ValidateIngressCreate(o), nil
	case *core.ServiceAccount:
		return corevalidation.ValidateServiceAccount(o), nil
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o), nil
	}
	return nil, unjudged{object}
}
