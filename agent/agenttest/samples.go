package agenttest

import "dev.muster/telemetry"

// Working is a sample of so many GPUs, of which one is not like the others.
func Working(k telemetry.Kind, gpus, odd int) *telemetry.Sample {
	s := telemetry.New(k)
	for i := range s.Own {
		s.Own[i] = 50
	}
	for i := range gpus {
		v := s.GPU(i).Values
		v[telemetry.GPUUtil], v[telemetry.GPUPower], v[telemetry.GPUTemp] = 93, 600, 61
		if i == odd {
			v[telemetry.GPUUtil] = 41
		}
	}
	return s
}
