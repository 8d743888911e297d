// Package modes is the commands direct, container and slurm, which come before another command and
// say where it runs. Their words are those of the launcher of Primus:
//
//	primus slurm srun -N 2 -- container --image NAME -- train pretrain --config exp.yaml
//
// A command line is read whole, through all modes, before anything is done. For train the modes
// become flags of it (--launcher, --launcher-option and others), so that the experiment is checked
// before a job is submitted. Other commands are started elsewhere as they are.
package modes
