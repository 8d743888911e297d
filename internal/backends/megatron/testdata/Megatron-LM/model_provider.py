def model_provider(builder, args):
    return builder(args)
